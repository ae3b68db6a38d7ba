// Deadlock detection.
#pragma once

#include <string_view>

#include "core/state/context.h"
#include "core/state/wait_queue.h"

namespace holdfast {

// Whether `owner`, if it waited in queue `q` with this capacity, would in the end wait for itself.
// `upgrade`: the owner holds the key in a weaker mode.
bool would_deadlock(Context& ctx, const WaitQueue* q, std::string_view owner, Capacity capacity,
                    bool upgrade);

}  // namespace holdfast
