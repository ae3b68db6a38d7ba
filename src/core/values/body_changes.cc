// Changes of values with a ValueBody.
#include "core/values/body_changes.h"

#include <utility>

namespace holdfast {

void put_body(Context& ctx, KeyRef k, const Key& key, EntryType type, std::unique_ptr<ValueBody> body,
              ConnId client) {
  const ValueBody* const placed = place_body(
      std::move(body), [&](std::string_view bytes) { put_value(ctx, k, key, type, bytes, client); });
  ctx.keys(k.db).add_body_growth(static_cast<int64_t>(placed->bytes()));
}

bool replace_by_body(Context& ctx, DbIndex db, const Key& key, EntryType type,
                     std::unique_ptr<ValueBody> body, ConnId client) {
  Keyspace::Found f = find_any(ctx, db, key);
  const bool existed = f && type_of(*f) != EntryType::kNone;
  if (body->size() == 0) {
    if (existed) remove_key(ctx, {db, f}, End::kDeleted);
    return existed;
  }
  put_body(ctx, {db, f}, key, type, std::move(body), client);
  if (deadline_of(*f) != kNever) set_key_deadline(ctx, {db, f}, kNever, client);
  return existed;
}

std::unique_ptr<ValueBody> release_body(Keyspace& keys, Keyspace::Found& f) {
  std::unique_ptr<ValueBody> body(value_body_of(*f));
  keys.release_body(f);
  return body;
}

void end_body_change(Context& ctx, KeyRef k, ConnId client) {
  if (value_body_of(*k)->size() == 0) return remove_key(ctx, k, End::kDeleted);
  set_held_since(*k, ctx.now.mono);
  record_part_change(ctx, k, client);
}

}  // namespace holdfast
