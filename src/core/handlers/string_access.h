// Functions shared by the string commands: read and change the string of a key.
#pragma once

#include <string_view>

#include "core/command/value_test.h"
#include "core/keyspace/keyspace.h"
#include "core/state/context.h"
#include "core/state/request.h"

namespace holdfast {

// Finds a key that a command only reads. Counts a hit or a miss, and publishes a miss as a keyspace event.
Keyspace::Found find_to_read(Request& r, std::string_view key);

// The string of a key, or an empty string if the key is free. `fits`: false if the key has another type; an
// error has been written. `live`: whether the string exists.
struct StringAt {
  Key key;
  Keyspace::Found found;
  bool live = false;
  bool fits = false;
  std::string_view value;
};
StringAt find_string(Request& r, std::string_view key);

// Changes the string; the TTL stays. `event` is the keyspace event.
void change_string(Request& r, StringAt& s, std::string_view value, std::string_view event);

// The same from offset `at` (bytes) on. Zeros fill a gap between the end and `at`.
void change_string_part(Request& r, StringAt& s, size_t at, std::string_view part, std::string_view event);

// Whether a string may have this size in bytes. Writes an error if not.
bool check_string_size(Request& r, uint64_t size);

// Whether the operand of a condition can be a digest. Writes an error if it must be and cannot.
bool check_digest(Request& r, ValueTest test, std::string_view operand);

// Sets a string with or without an expiry, as SET does, and publishes the keyspace events.
void set_string(Request& r, const Key& key, Keyspace::Found& f, std::string_view value, TimeMs deadline);

}  // namespace holdfast
