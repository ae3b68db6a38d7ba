// Keys and their values: found, never past their deadline, and changed in the way that ends holds, wakes
// waiters and is written to the journal.
#pragma once

#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/lock/holds.h"
#include "core/state/state.h"

namespace holdfast {

// The entry of a key, never a due one: what was due is ended first. May be a placeholder.
inline Keyspace::Found find_any(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = ctx.keys(db).find(key);
  if (f && is_due(*f, ctx.due)) [[unlikely]]
    expire_key(ctx, db, f);
  return f;
}
// The same, but nothing where nobody holds the key.
inline Keyspace::Found find_live(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = find_any(ctx, db, key);
  if (f && type_of(*f) == EntryType::kNone) f = {};
  return f;
}

// Gives the key a value of a type that has no holders of its own, as put_string() does; `bytes` is what the
// entry is to hold. What was there before is overwritten.
void put_value(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f, EntryType type,
               std::string_view bytes, ConnId client);
// A value was changed within its entry, or rewritten there.
void record_value_change(Context& ctx, DbIndex db, const Keyspace::Found& f, ConnId client);
// The same, where the journal has been told already of the part that changed.
void record_part_change(Context& ctx, DbIndex db, const Keyspace::Found& f, ConnId client);

// Makes the key a string, with `client` as the one who set it. Another value than before is another hold;
// the same value keeps token and attachment. The deadline stays; a new key has none. `f` must be
// find_any()'s for the key.
// `token` is the new hold's where it is given.
void put_string(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f, std::string_view value,
                ConnId client, Token token = {});

// The same for a string that is there and changes from place `at` on: a large one is changed where it is.
// Between its end and `at` come zeros.
void put_string_part(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f, size_t at,
                     std::string_view part, ConnId client);

// Sets the deadline of the key and of all its holds.
void set_key_deadline(Context& ctx, DbIndex db, Keyspace::Found& f, TimeMs deadline, ConnId client);
// When the key will be gone: the latest deadline of its holds.
TimeMs key_deadline(const Entry& e);

// Empties a database; its queues are served before the turn ends.
void flush_db(Context& ctx, DbIndex db);

}  // namespace holdfast
