// Sets deadlines of fields.
#include "core/values/field_expiry.h"

#include <optional>

#include "core/events/record_changes.h"
#include "core/keyspace/change_body.h"
#include "core/keyspace/hash_view.h"
#include "core/lock/value_expiry.h"
#include "core/values/body_changes.h"
#include "core/values/hash_changes.h"

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

}  // namespace holdfast
