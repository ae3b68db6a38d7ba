// Functions shared by the hash commands: the look-up of a key, with Redis's replies for a missing key or
// another type, and a change with its keyspace events.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/events/change_events.h"
#include "core/keyspace/keyspace.h"
#include "core/state/request.h"
#include "core/values/hash_changes.h"

namespace holdfast {

// Returns the hash of the key in argument 1, or an empty hash if there is no such key. Writes -WRONGTYPE
// and returns nullopt for another type. Counts a hit or a miss, and publishes a miss.
std::optional<HashView> find_hash_to_read(Request& r);

// The same, for a command that may change the hash.
struct HashTarget {
  Key key;
  Keyspace::Found f;  // from find_any()
  HashView hash;      // valid until the next change
  bool exists() const { return f && type_of(*f) != EntryType::kNone; }
};
std::optional<HashTarget> find_hash_to_write(Request& r);

// Calls set_fields(), or set_fields_only() to keep the deadlines of fields, then publishes the event.
// Returns the number of new fields.
size_t put_fields(Request& r, HashTarget& target, std::span<const std::string_view> pairs,
                  std::string_view event, bool keep_deadlines = false);

// Replies with the value of a field, or with null.
inline void reply_value(Request& r, std::optional<std::string_view> value) {
  value ? r.reply.bulk(*value) : r.reply.null();
}

}  // namespace holdfast
