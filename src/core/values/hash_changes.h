// Changes of the hash that a key holds. They go through keys.h, so that WATCH, client caches and queues see
// them. The command sends the keyspace event.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/hash_view.h"
#include "core/keyspace/keyspace.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// Sets fields; `pairs` is field, value, field, value ... The key holds a hash, or nothing yet; `k.f` must
// be the result of find_any() for it. The deadline stays. Returns the number of new fields.
size_t set_fields(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> pairs,
                  ConnId client);

// Erases fields of a hash. The last field removes the key, as remove_key() does. Returns the number of
// erased fields.
size_t erase_fields(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> fields,
                    ConnId client);

// Gives the hash of the key the big form, if it has the packed one. Returns it.
HashBody& big_hash(Context& ctx, KeyRef k, const Key& key);

}  // namespace holdfast
