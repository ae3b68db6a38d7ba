// Deadlines of the fields of a hash: HEXPIRE and its forms, HTTL and its forms, HPERSIST (Redis 7.4);
// HGETEX, HGETDEL, HSETEX (Redis 8.0).
#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/parse.h"
#include "core/codec/rdb.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/expire_words.h"
#include "core/handlers/hash_access.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/field_expiry.h"

namespace holdfast {

namespace {

using Fields = std::span<const std::string_view>;

constexpr std::string_view kBadCount = "ERR Number of fields must be a positive integer";

// Reads "FIELDS numfields field ..." from argument `at` on. Writes an error and returns nullopt if it is
// wrong; `bad_count` is that of the number.
std::optional<Fields> read_fields(Request& r, size_t at, std::string_view bad_count = kBadCount) {
  if (at >= r.argc() || !equals_ignore_case(r.arg(at), "FIELDS")) {
    return r.reply.error("ERR Mandatory argument FIELDS is missing or not at the right position"),
           std::nullopt;
  }
  const auto count = at + 1 < r.argc() ? parse_int_in(r.arg(at + 1), 1, std::numeric_limits<int64_t>::max())
                                       : std::nullopt;
  if (!count) return r.reply.error(bad_count), std::nullopt;
  if (static_cast<size_t>(*count) != r.argc() - at - 2) {
    return r.reply.error("ERR The `numfields` parameter must match the number of arguments"), std::nullopt;
  }
  return r.argv.subspan(at + 2);
}

// Reads a time. One in the past is no error: it erases the fields.
std::optional<TimeMs> read_field_deadline(Request& r, const ExpiryWord& word, std::string_view text) {
  const auto value = parse_int(text);
  if (!value) return reply_not_an_integer(r), std::nullopt;
  if (*value < 0) return r.reply.error("ERR invalid expire time, must be >= 0"), std::nullopt;
  const int64_t base_ms = word.absolute ? 0 : r.ctx.now.wall_us / 1000;
  if (*value > rdb::kMaxFieldDeadlineMs / word.unit_ms ||
      *value * word.unit_ms > rdb::kMaxFieldDeadlineMs - base_ms) {
    return reply_invalid_expiry(r), std::nullopt;
  }
  return deadline_at(r, *value * word.unit_ms, word.absolute);
}

void reply_for_each(Request& r, size_t count, FieldResult result) {
  r.reply.array(count);
  for (size_t i = 0; i < count; ++i) r.reply.integer(static_cast<int64_t>(result));
}

void notify_hash(Request& r, std::string_view event) {
  notify(r.ctx, kNotifyHash, event, r.c.db, r.arg(1));
}

// Publishes the events of a change that erased fields.
void notify_erased(Request& r, const HashTarget& target) {
  notify_hash(r, "hdel");
  if (!target.exists()) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
}

// Sets the deadlines, replies with the results, and publishes `event` if a field has got one.
void change_deadlines(Request& r, HashTarget& target, Fields fields, TimeMs deadline, DeadlineIf condition,
                      std::string_view event) {
  if (!target.exists()) return reply_for_each(r, fields.size(), FieldResult::kNoField);
  const auto results =
      set_field_deadlines(r.ctx, {r.c.db, target.f}, target.key, fields, deadline, condition, r.c.id);
  size_t set = 0;
  size_t erased = 0;
  r.reply.array(results.size());
  for (const FieldResult result : results) {
    set += result == FieldResult::kSet ? 1 : 0;
    erased += result == FieldResult::kErased ? 1 : 0;
    r.reply.integer(static_cast<int64_t>(result));
  }
  if (set > 0) notify_hash(r, event);
  if (erased > 0) notify_erased(r, target);
}

struct ConditionWord {
  std::string_view word;
  DeadlineIf condition;
};
constexpr ConditionWord kConditionWords[] = {{"NX", DeadlineIf::kIfNone},
                                             {"XX", DeadlineIf::kIfSome},
                                             {"GT", DeadlineIf::kIfLater},
                                             {"LT", DeadlineIf::kIfEarlier}};

void expire_fields(Request& r, const ExpiryWord& word) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  const auto deadline = read_field_deadline(r, word, r.arg(2));
  if (!deadline) return;
  DeadlineIf condition = DeadlineIf::kAny;
  for (const ConditionWord& c : kConditionWords) {
    if (equals_ignore_case(r.arg(3), c.word)) condition = c.condition;
  }
  const auto fields = read_fields(r, condition == DeadlineIf::kAny ? 3 : 4,
                                  "ERR Parameter `numFields` should be greater than 0");
  if (fields) change_deadlines(r, *target, *fields, *deadline, condition, "hexpire");
}

// Replies for each field with f(deadline); with -2 if there is no such field, with -1 if it has no
// deadline.
template <class F>
void reply_deadlines(Request& r, F f) {
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  const auto fields = read_fields(r, 2);
  if (!fields) return;
  r.reply.array(fields->size());
  for (const std::string_view field : *fields) {
    const TimeMs deadline = hash->deadline_of(field);
    if (!hash->find(field)) {
      r.reply.integer(-2);
    } else {
      r.reply.integer(deadline == kNever ? -1 : f(deadline));
    }
  }
}

int64_t seconds_up(int64_t ms) { return (ms + 999) / 1000; }

// Replies with the values of fields and erases each: a field that is named twice is missing then.
void get_and_erase(Request& r, HashTarget& target, Fields fields) {
  size_t erased = 0;
  r.reply.array(fields.size());
  for (const std::string_view field : fields) {
    const auto value = target.exists() ? HashView(*target.f).find(field) : std::nullopt;
    reply_value(r, value);
    if (value) erased += erase_fields(r.ctx, {r.c.db, target.f}, target.key, {&field, 1}, r.c.id);
  }
  if (erased > 0) notify_erased(r, target);
}

struct SetexOptions {
  bool if_present = false;  // FXX
  bool if_absent = false;   // FNX
  bool keep_ttl = false;
  const ExpiryWord* expiry = nullptr;
  TimeMs deadline = kNever;
  Fields pairs;
};

// Reads the option at `i`, and moves `i` to its last argument. Writes an error and returns false if it is
// invalid.
bool read_setex_option(Request& r, size_t& i, SetexOptions& o) {
  const std::string_view word = r.arg(i);
  const ExpiryWord* const expiry = find_expiry_word(word);
  const bool keep = equals_ignore_case(word, "KEEPTTL");
  if (expiry != nullptr || keep) {
    if (o.expiry != nullptr || o.keep_ttl) {
      r.reply.error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
      return false;
    }
    o.keep_ttl = keep;
    o.expiry = expiry;
    if (keep) return true;
    if (i + 1 == r.argc()) return r.reply.error("ERR missing expire time"), false;
    const auto deadline = read_field_deadline(r, *expiry, r.arg(++i));
    o.deadline = deadline.value_or(kNever);
    return deadline.has_value();
  }
  const bool present = equals_ignore_case(word, "FXX");
  if (!present && !equals_ignore_case(word, "FNX")) {
    r.reply.error(std::string("ERR unknown argument: ").append(word.substr(0, word.find('\0'))));
    return false;
  }
  if (o.if_present || o.if_absent) {
    return r.reply.error("ERR Only one of FXX or FNX arguments can be specified"), false;
  }
  (present ? o.if_present : o.if_absent) = true;
  return true;
}

// Reads the arguments of HSETEX. Writes an error and returns nullopt if one is invalid.
std::optional<SetexOptions> read_setex(Request& r) {
  SetexOptions o;
  for (size_t i = 2; i < r.argc(); ++i) {
    if (!equals_ignore_case(r.arg(i), "FIELDS")) {
      if (!read_setex_option(r, i, o)) return std::nullopt;
      continue;
    }
    if (i + 3 >= r.argc()) break;
    const auto count = parse_int_in(r.arg(i + 1), 1, std::numeric_limits<int32_t>::max());
    if (!count) return r.reply.error("ERR invalid number of fields"), std::nullopt;
    o.pairs = r.argv.subspan(i + 2);
    if (o.pairs.size() != 2 * static_cast<size_t>(*count)) break;
    return o;
  }
  reply_wrong_arity(r);
  return std::nullopt;
}

bool admits(const SetexOptions& o, const HashView& hash) {
  if (!o.if_present && !o.if_absent) return true;
  for (size_t i = 0; i < o.pairs.size(); i += 2) {
    if (hash.find(o.pairs[i]).has_value() != o.if_present) return false;
  }
  return true;
}

std::vector<std::string_view> names_of(Fields pairs) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < pairs.size(); i += 2) names.push_back(pairs[i]);
  return names;
}

}  // namespace

void cmd_hexpire(Request& r) { expire_fields(r, kExpiryWords[0]); }
void cmd_hpexpire(Request& r) { expire_fields(r, kExpiryWords[1]); }
void cmd_hexpireat(Request& r) { expire_fields(r, kExpiryWords[2]); }
void cmd_hpexpireat(Request& r) { expire_fields(r, kExpiryWords[3]); }

void cmd_httl(Request& r) {
  reply_deadlines(r, [&](TimeMs deadline) { return seconds_up((deadline - r.now()).count); });
}
void cmd_hpttl(Request& r) {
  reply_deadlines(r, [&](TimeMs deadline) { return (deadline - r.now()).count; });
}
void cmd_hexpiretime(Request& r) {
  reply_deadlines(r, [&](TimeMs deadline) { return seconds_up(r.ctx.now.to_wall_ms(deadline)); });
}
void cmd_hpexpiretime(Request& r) {
  reply_deadlines(r, [&](TimeMs deadline) { return r.ctx.now.to_wall_ms(deadline); });
}

void cmd_hpersist(Request& r) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  const auto fields = read_fields(r, 2);
  if (fields) change_deadlines(r, *target, *fields, kNever, DeadlineIf::kAny, "hpersist");
}

void cmd_hgetdel(Request& r) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  if (const auto fields = read_fields(r, 2)) get_and_erase(r, *target, *fields);
}

void cmd_hgetex(Request& r) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  const ExpiryWord* const expiry = find_expiry_word(r.arg(2));
  const bool persist = equals_ignore_case(r.arg(2), "PERSIST");
  const auto deadline = expiry == nullptr ? kNever : read_field_deadline(r, *expiry, r.arg(3));
  if (!deadline) return;
  const auto fields = read_fields(r, expiry != nullptr ? 4 : persist ? 3 : 2);
  if (!fields) return;
  if (is_due(*deadline, r.now())) return get_and_erase(r, *target, *fields);
  r.reply.array(fields->size());
  for (const std::string_view field : *fields) reply_value(r, target->hash.find(field));
  if (!target->exists() || (expiry == nullptr && !persist)) return;
  const auto results = set_field_deadlines(r.ctx, {r.c.db, target->f}, target->key, *fields, *deadline,
                                           DeadlineIf::kAny, r.c.id);
  const bool any = std::ranges::find(results, FieldResult::kSet) != results.end();
  if (any) notify_hash(r, persist ? "hpersist" : "hexpire");
}

void cmd_hsetex(Request& r) {
  const auto o = read_setex(r);
  if (!o) return;
  auto target = find_hash_to_write(r);
  if (!target) return;
  if (!admits(*o, target->hash)) return r.reply.integer(0);
  put_fields(r, *target, o->pairs, "hset", o->keep_ttl);
  r.reply.integer(1);
  if (o->expiry == nullptr) return;
  const KeyRef k{r.c.db, target->f};
  const std::vector<std::string_view> names = names_of(o->pairs);
  if (is_due(o->deadline, r.now())) {
    erase_fields(r.ctx, k, target->key, names, r.c.id);
    return notify_erased(r, *target);
  }
  set_field_deadlines(r.ctx, k, target->key, names, o->deadline, DeadlineIf::kAny, r.c.id);
  notify_hash(r, "hexpire");
}

}  // namespace holdfast
