// Changes of the hash that a key holds, by keys.h, so that WATCH, caches and queues hear of them; the
// keyspace event is the command's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/hash_view.h"
#include "core/keyspace/keyspace.h"
#include "core/state/state.h"

namespace holdfast {

// Sets fields; `pairs` is field, value, field, value ... The key holds a hash, or nothing yet: `f` must be
// find_any()'s for it. The deadline stays. Returns how many fields are new.
size_t set_fields(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                  std::span<const std::string_view> pairs, ConnId client);

// Erases fields of a hash; the key goes with the last, as by remove_key(). Returns how many there were.
size_t erase_fields(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                    std::span<const std::string_view> fields, ConnId client);

// Gives the key a hash body, as put_value() does with other values.
void put_big_hash(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f,
                  std::unique_ptr<HashBody> body, ConnId client);

// Takes the body out of a kBigHash, for put_big_hash() to give it to another key: nothing is copied. The
// entry is left with an empty small hash, which no key may show: remove_key() has to follow at once.
std::unique_ptr<HashBody> release_big_hash(Keyspace& keys, Keyspace::Found& f);

}  // namespace holdfast
