// Deadlocks.
#pragma once

#include <string_view>

#include "core/state/state.h"

namespace holdfast {

// Whether `owner`, waiting for the key as described, would wait for itself in the end.
bool would_deadlock(Context& ctx, const WaitQueue* q, std::string_view owner, Capacity capacity,
                    bool upgrade);

}  // namespace holdfast
