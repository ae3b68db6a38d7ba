// Keys and their strings; values/ has the other values. A look-up never returns an expired value. Each
// change ends holds, wakes waiters and writes to the journal as it must.
#pragma once

#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/lock/holds.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// Returns the entry of a key, which may be a placeholder. Expires first all of it that is due.
inline Keyspace::Found find_any(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = ctx.keys(db).find(key);
  if (f && is_due(*f, ctx.due)) [[unlikely]]
    expire_key(ctx, {db, f});
  return f;
}
// The same, but returns nothing for a placeholder (a key without holder and value).
inline Keyspace::Found find_live(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = find_any(ctx, db, key);
  if (f && type_of(*f) == EntryType::kNone) f = {};
  return f;
}

// Sets the key to a value of a type without holders of its own, as put_string() does. `bytes` is the new
// content of the entry. The former value is overwritten.
void put_value(Context& ctx, KeyRef k, const Key& key, EntryType type, std::string_view bytes,
               ConnId client);
// The same without a record of the change, which the caller must add.
void place_value(Context& ctx, KeyRef k, const Key& key, EntryType type, std::string_view bytes);
// Records that a value was changed within its entry, or rewritten there.
void record_value_change(Context& ctx, KeyRef k, ConnId client);
// The same, if only the deadline or the hold changed.
void record_hold_change(Context& ctx, KeyRef k, ConnId client);
// The same, if the journal already has a record of the changed part.
void record_part_change(Context& ctx, KeyRef k, ConnId client);

// Makes the key a string, set by `client`. A different value is a new hold; the same value keeps token and
// attachment. The deadline stays; a new key has none. `k.f` must be the result of find_any() for the key.
// `token`, if given, is that of the new hold.
void put_string(Context& ctx, KeyRef k, const Key& key, std::string_view value, ConnId client,
                Token token = {});

// The same for the bytes of a large string, which are not copied. Always a new hold.
void put_loose_string(Context& ctx, KeyRef k, const Key& key, Keyspace::LooseString string, ConnId client);

// As put_string() for a part of a string, from offset `at` (bytes) on; a missing key is an empty string. A
// large string is changed in place. Zeros fill a gap between its end and `at`.
void put_string_part(Context& ctx, KeyRef k, const Key& key, size_t at, std::string_view part,
                     ConnId client);

// Sets the deadline of the key and of all its holds.
void set_key_deadline(Context& ctx, KeyRef k, TimeMs deadline, ConnId client);
// The time at which the key will be removed: the latest deadline of its holds.
TimeMs key_deadline(const Entry& e);

// Empties a database. Its queues are served before the engine call ends.
void flush_db(Context& ctx, DbIndex db);

}  // namespace holdfast
