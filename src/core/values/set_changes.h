// Changes of the set that a key holds: see body_changes.h. The command sends the keyspace event.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/set_body.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// An empty set with the settings of the engine.
std::unique_ptr<SetBody> new_set(const EngineState& s);

// Adds members. The key holds a set, or nothing yet; `k.f` must be the result of find_any() for it. Returns
// the number of new members.
size_t add_members(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> members,
                   ConnId client);

}  // namespace holdfast
