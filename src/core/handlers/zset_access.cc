// Removals from sorted sets, with their events.
#include "core/handlers/zset_access.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/lock/keys.h"
#include "core/values/zset_changes.h"

namespace holdfast {

Ranks end_ranks(const ZsetBody& zset, ZsetEnd end, size_t most) {
  const size_t count = std::min(most, zset.size());
  return {end == ZsetEnd::kMin ? 0 : zset.size() - count, count};
}

void pop_ranks(Context& ctx, KeyRef k, const Ranks& ranks, ZsetEnd end, ConnId client) {
  const std::string key(key_of(*k));
  remove_ranks(ctx, k, ranks.rank, ranks.count, client);
  notify_removal(ctx, k.db, ctx.keys(k.db).key(key), end == ZsetEnd::kMin ? "zpopmin" : "zpopmax");
}

void notify_removal(Context& ctx, DbIndex db, const Key& key, std::string_view event) {
  notify(ctx, kNotifyZset, event, db, key.bytes);
  if (!find_live(ctx, db, key)) notify(ctx, kNotifyGeneric, "del", db, key.bytes);
}

void store_zset(Request& r, std::unique_ptr<ZsetBody> result, std::string_view event) {
  result->drop_minus_zero();
  store_body(r, EntryType::kZset, std::move(result), kNotifyZset, event);
}

}  // namespace holdfast
