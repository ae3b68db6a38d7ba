// What the commands on strings share: a key's string, read or changed.
#pragma once

#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/state/request.h"

namespace holdfast {

// A key that a command only reads: counted as a hit or a miss, of which keyspace events tell.
Keyspace::Found find_to_read(Request& r, std::string_view key);

// A key's string, or where the key is free an empty one. `fits` false: an error has been written. `live` is
// whether there was a string at all.
struct StringAt {
  Key key;
  Keyspace::Found found;
  bool live = false;
  bool fits = false;
  std::string_view value;
};
StringAt find_string(Request& r, std::string_view key);

// Changes it; the ttl stays. `event` is what keyspace events tell.
void change_string(Request& r, StringAt& s, std::string_view value, std::string_view event);

// The same from place `at` on, with zeros between its end and that.
void change_string_part(Request& r, StringAt& s, size_t at, std::string_view part, std::string_view event);

// Whether a string may be so long; writes an error where not.
bool check_string_size(Request& r, uint64_t size);

// Whether a newcomer may make the key: nobody has it, waits for it, or keeps it by a lock-delay.
bool is_free(Context& ctx, DbIndex db, const Keyspace::Found& f);

// Sets a string without or with an expiry, as SET does, and tells of it.
void set_string(Request& r, const Key& key, Keyspace::Found& f, std::string_view value, TimeMs deadline);

}  // namespace holdfast
