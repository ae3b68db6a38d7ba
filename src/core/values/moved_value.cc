// Moves and copies values.
#include "core/values/moved_value.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/events/record_changes.h"
#include "core/lock/keys.h"
#include "core/values/body_changes.h"

namespace holdfast {

namespace {

// The value of a key, but not a lock with several holders.
struct MovedValue {
  EntryType type = EntryType::kString;
  std::string bytes;
  std::optional<Keyspace::LooseString> string;  // instead of `bytes`, if it is large
  std::unique_ptr<ValueBody> body;              // the same, of a type with a body
  TimeMs deadline = kNever;
};

MovedValue copied(const Entry& e) {
  MovedValue v;
  v.type = type_of(e);
  v.deadline = key_deadline(e);
  if (has_value_body(e)) {
    v.body = value_body_of(e)->copy();
  } else if (Keyspace::is_large_string(e)) {
    v.string = Keyspace::copy_string(e);
  } else {
    v.bytes = value_of(e);
  }
  return v;
}

// Moves the value out and removes the key.
MovedValue taken(Context& ctx, KeyRef k) {
  MovedValue v;
  if (has_value_body(*k)) {
    v.type = type_of(*k);
    v.deadline = key_deadline(*k);
    v.body = release_body(ctx.keys(k.db), k.f);
  } else if (Keyspace::is_large_string(*k)) {
    v.deadline = key_deadline(*k);
    end_exclusive(ctx, k, End::kDeleted, ctx.due);
    v.string = ctx.keys(k.db).release_string(k.f);
  } else {
    v = copied(*k);
  }
  remove_key(ctx, k, End::kDeleted);
  return v;
}

// Removes the former value of the key first, so that an old hold does not survive if the values are equal.
Keyspace::Found put(Context& ctx, DbIndex db, std::string_view name, MovedValue v, ConnId client) {
  const Key key = ctx.keys(db).key(name);
  Keyspace::Found f = find_live(ctx, db, key);
  if (f) remove_key(ctx, {db, f}, End::kOverwritten);
  f = find_any(ctx, db, key);
  if (v.body != nullptr) {
    put_body(ctx, {db, f}, key, v.type, std::move(v.body), client);
  } else if (v.string) {
    put_loose_string(ctx, {db, f}, key, std::move(*v.string), client);
  } else if (v.type == EntryType::kString) {
    put_string(ctx, {db, f}, key, v.bytes, client);
  } else {
    put_value(ctx, {db, f}, key, v.type, v.bytes, client);
  }
  set_key_deadline(ctx, {db, f}, v.deadline, client);
  return f;
}

}  // namespace

Keyspace::Found move_value(Context& ctx, KeyRef k, std::string_view to, ConnId client) {
  const bool recorded = begin_move(ctx, Record::kMove, k.db, k.f, k.db, to);
  const Keyspace::Found moved = put(ctx, k.db, to, taken(ctx, k), client);
  if (recorded) end_move(ctx, moved);
  return moved;
}

Keyspace::Found copy_value(Context& ctx, KeyRef k, DbIndex to_db, std::string_view to, ConnId client) {
  const bool recorded = begin_move(ctx, Record::kCopy, k.db, k.f, to_db, to);
  const Keyspace::Found copy = put(ctx, to_db, to, copied(*k), client);
  if (recorded) end_move(ctx, copy);
  return copy;
}

}  // namespace holdfast
