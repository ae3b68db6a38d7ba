// Keeps the deadlines of entries whose fields have deadlines, and erases the fields that are due.
#include "core/lock/value_expiry.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/keyspace/change_body.h"
#include "core/keyspace/hash_body.h"
#include "core/lock/holds.h"
#include "core/state/stats.h"

namespace holdfast {

// Sets the deadline of an entry; its TTL is the time that is left.
static void place_from_now(Context& ctx, KeyRef k, TimeMs deadline) {
  const int64_t left_ms = deadline == kNever ? 0 : (deadline - ctx.now.mono).count;
  place_deadline(ctx, k, deadline, {std::max<int64_t>(left_ms, 0)}, ctx.now.mono);
}

void follow_fields(Context& ctx, KeyRef k) {
  const FieldDeadlines* fields = field_deadlines_of(*k);
  if (fields == nullptr) return;
  const TimeMs first = fields->next();
  change_body(ctx.keys(k.db), *value_body_of(*k), [&] {
    hash_body_of(*k)->drop_empty_deadlines();
    return 0;
  });
  if (first != deadline_of(*k)) place_from_now(ctx, k, first);
}

void forget_fields(Context& ctx, KeyRef k) {
  const FieldDeadlines* fields = field_deadlines_of(*k);
  if (fields == nullptr || deadline_of(*k) == fields->of_key) return;
  place_from_now(ctx, k, fields->of_key);
}

void place_value_deadline(Context& ctx, KeyRef k, TimeMs deadline) {
  if (field_deadlines_of(*k) == nullptr) return place_from_now(ctx, k, deadline);
  hash_body_of(*k)->set_key_deadline(deadline);
  follow_fields(ctx, k);
}

size_t expire_fields(Context& ctx, KeyRef k, size_t most) {
  constexpr DurationMs kBetweenParts{1};
  HashBody& body = *hash_body_of(*k);
  const std::string key(key_of(*k));
  const size_t expired = body.hide_due(ctx.due);
  ctx.s.stats.expired_fields += expired;
  const bool all = body.visible() == 0;
  std::vector<std::string> erased;
  if (all) {
    remove_key(ctx, k, End::kExpired);
  } else {
    erased = change_body(ctx.keys(k.db), body,
                         [&] { return body.erase_hidden(most, ctx.now.mono + kBetweenParts); });
    follow_fields(ctx, k);
    if (!erased.empty()) {
      journal_erased_fields(ctx, k.db, key, std::vector<std::string_view>(erased.begin(), erased.end()));
    }
  }
  if (expired == 0) return erased.size();
  if (!all) {
    key_changed(ctx, k.db, key);
    touch(ctx, k.db, *k);
  }
  notify(ctx, kNotifyHash, "hexpired", k.db, key);
  if (all) notify(ctx, kNotifyGeneric, "del", k.db, key);
  return erased.size();
}

}  // namespace holdfast
