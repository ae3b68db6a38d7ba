// Sets deadlines of fields, and erases the fields that are due.
#include "core/lock/field_expiry.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/config.h"
#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/lock/body_changes.h"
#include "core/lock/hash_changes.h"
#include "core/lock/holds.h"
#include "core/lock/keys.h"
#include "core/state/stats.h"

namespace holdfast {

namespace {

bool admits(DeadlineIf condition, TimeMs present, TimeMs wanted) {
  switch (condition) {
    case DeadlineIf::kIfNone:
      return present == kNever;
    case DeadlineIf::kIfSome:
      return present != kNever;
    case DeadlineIf::kIfLater:
      return wanted > present;
    case DeadlineIf::kIfEarlier:
      return wanted < present;
    case DeadlineIf::kAny:
      break;
  }
  return true;
}

struct Wanted {
  TimeMs deadline;
  DeadlineIf condition;
  bool due;
};

// What becomes of a field with the deadline `present`.
FieldResult result_of(const Wanted& w, TimeMs present) {
  if (w.deadline == kNever) return present == kNever ? FieldResult::kUntimed : FieldResult::kSet;
  if (!admits(w.condition, present, w.deadline)) return FieldResult::kUnmet;
  return w.due ? FieldResult::kErased : FieldResult::kSet;
}

FieldResult result_of(const Wanted& w, const HashView& hash, std::string_view field) {
  return hash.find(field) ? result_of(w, hash.deadline_of(field)) : FieldResult::kNoField;
}

// The results for a hash none of whose fields has a deadline, if the request changes nothing.
std::optional<std::vector<FieldResult>> without_change(const Entry& e,
                                                       std::span<const std::string_view> fields,
                                                       const Wanted& w) {
  std::vector<FieldResult> results;
  for (const std::string_view field : fields) {
    results.push_back(result_of(w, HashView(e), field));
    if (results.back() == FieldResult::kSet) return std::nullopt;
  }
  return results;
}

// Erases the fields one after the other: one that is named twice is missing then.
std::vector<FieldResult> erase_each(Context& ctx, KeyRef k, const Key& key,
                                    std::span<const std::string_view> fields, const Wanted& w,
                                    ConnId client) {
  std::vector<FieldResult> results;
  for (const std::string_view field : fields) {
    const bool gone = !k || !is_hash(*k);
    results.push_back(gone ? FieldResult::kNoField : result_of(w, HashView(*k), field));
    if (results.back() == FieldResult::kErased) erase_fields(ctx, k, key, {&field, 1}, client);
  }
  return results;
}

// Sets the deadline of an entry; its TTL is the time that is left.
void place_from_now(Context& ctx, KeyRef k, TimeMs deadline) {
  const int64_t left_ms = deadline == kNever ? 0 : (deadline - ctx.now.mono).count;
  place_deadline(ctx, k, deadline, {std::max<int64_t>(left_ms, 0)}, ctx.now.mono);
}

void end_change(Context& ctx, KeyRef k, ConnId client) {
  follow_fields(ctx, k);
  end_body_change(ctx, k, client);
}

}  // namespace

std::vector<FieldResult> set_field_deadlines(Context& ctx, KeyRef k, const Key& key,
                                             std::span<const std::string_view> fields, TimeMs deadline,
                                             DeadlineIf condition, ConnId client) {
  const Wanted wanted{deadline, condition, is_due(deadline, ctx.now.mono)};
  if (wanted.due) return erase_each(ctx, k, key, fields, wanted, client);
  if (field_deadlines_of(*k) == nullptr) {
    if (auto results = without_change(*k, fields, wanted)) return *std::move(results);
  }
  HashBody& body = big_hash(ctx, k, key);
  const TimeMs of_key = value_deadline_of(*k);
  std::vector<FieldResult> results;
  std::vector<std::string_view> changed;
  change_body(ctx.keys(k.db), body, [&] {
    for (const std::string_view field : fields) {
      results.push_back(result_of(wanted, HashView(*k), field));
      if (results.back() != FieldResult::kSet) continue;
      body.set_deadline(field, deadline, of_key);
      changed.push_back(field);
    }
    return 0;
  });
  if (changed.empty()) return results;
  journal_field_deadlines(ctx, k.db, key.bytes, changed, deadline);
  end_change(ctx, k, client);
  return results;
}

void put_field_deadlines(Context& ctx, KeyRef k, const Key& key, std::span<const FieldDeadline> deadlines,
                         ConnId client) {
  HashBody& body = big_hash(ctx, k, key);
  const TimeMs of_key = value_deadline_of(*k);
  change_body(ctx.keys(k.db), body, [&] {
    for (const auto& [field, deadline] : deadlines) body.set_deadline(field, deadline, of_key);
    return 0;
  });
  for (const auto& [field, deadline] : deadlines) {
    journal_field_deadlines(ctx, k.db, key.bytes, {&field, 1}, deadline);
  }
  end_change(ctx, k, client);
}

size_t set_fields_only(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> pairs,
                       ConnId client) {
  std::vector<FieldDeadline> kept;
  if (k && field_deadlines_of(*k) != nullptr) {
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const TimeMs deadline = hash_body_of(*k)->deadline_of(pairs[i]);
      if (deadline != kNever) kept.emplace_back(pairs[i], deadline);
    }
  }
  const size_t made = set_fields(ctx, k, key, pairs, client);
  if (!kept.empty()) put_field_deadlines(ctx, k, key, kept, client);
  return made;
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
