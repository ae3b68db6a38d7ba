// What the commands on hashes share: the key's look-up with Redis's answers to a key that is missing or
// holds something else, and a change with its keyspace events.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/events/change_events.h"
#include "core/lock/hash_changes.h"

namespace holdfast {

// The hash of the key in argument 1, without fields where there is no such key. Nullopt: -WRONGTYPE has
// been written. Counts as a look-up, and a miss is told of.
std::optional<HashView> find_hash_to_read(Request& r);

// The same, for a command that may change it.
struct HashTarget {
  Key key;
  Keyspace::Found f;  // find_any()'s
  HashView hash;      // until it is changed
  bool exists() const { return f && type_of(*f) != EntryType::kNone; }
};
std::optional<HashTarget> find_hash_to_write(Request& r);

// set_fields(), then the event.
size_t put_fields(Request& r, HashTarget& target, std::span<const std::string_view> pairs,
                  std::string_view event);

}  // namespace holdfast
