// Changes of the hash that a key holds. They go through keys.h, so that WATCH, client caches and queues see
// them. The command sends the keyspace event.
#pragma once

#include <memory>
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

// Sets the key to a hash body, as put_value() does with other values. Takes ownership of `body`.
void put_big_hash(Context& ctx, KeyRef k, const Key& key, std::unique_ptr<HashBody> body, ConnId client);

// Takes the body out of a kBigHash without a copy, so that put_big_hash() can move it to another key. The
// entry keeps an empty small hash, which no client may see: the caller must call remove_key() at once.
std::unique_ptr<HashBody> release_big_hash(Keyspace& keys, Keyspace::Found& f);

}  // namespace holdfast
