// SET, its older forms and MSETEX; GET and its forms that change the key as well.
#include <limits>

#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/command/value_test.h"
#include "core/events/change_events.h"
#include "core/handlers/expire_words.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

enum class Condition : uint8_t { kNone, kIfAbsent, kIfPresent, kIfValue };

struct SetOptions {
  Condition condition = Condition::kNone;
  ValueTest test = ValueTest::kNone;  // of kIfValue
  std::string_view operand;           // the value or digest of the test
  bool get = false;
  bool keep_ttl = false;
  const ExpiryWord* expiry = nullptr;
  std::string_view expiry_text;
};

bool set_condition(SetOptions& o, Condition c) {
  if (o.condition != Condition::kNone && o.condition != c) return false;
  o.condition = c;
  return true;
}

// Reads the option at `i`, and moves `i` to its last argument. Writes an error and returns false if it is
// invalid.
[[gnu::always_inline]] inline bool read_set_option(Request& r, size_t& i, SetOptions& o) {
  const std::string_view word = r.arg(i);
  const bool more = i + 1 < r.argc();
  if (equals_ignore_case(word, "NX") && set_condition(o, Condition::kIfAbsent)) return true;
  if (equals_ignore_case(word, "XX") && set_condition(o, Condition::kIfPresent)) return true;
  const ExpiryWord* expiry = find_expiry_word(word);
  // A repeated option replaces its former value.
  if (expiry != nullptr && more && (o.expiry == nullptr || o.expiry == expiry) && !o.keep_ttl) {
    o.expiry = expiry;
    o.expiry_text = r.arg(++i);
    return true;
  }
  const ValueTest test = condition_word(word);
  if (test != ValueTest::kNone && more && o.condition == Condition::kNone) {
    o.condition = Condition::kIfValue;
    o.test = test;
    o.operand = r.arg(++i);
    return true;
  }
  if (equals_ignore_case(word, "GET")) return o.get = true;
  if (equals_ignore_case(word, "KEEPTTL") && o.expiry == nullptr) return o.keep_ttl = true;
  reply_syntax_error(r);
  return false;
}

// Whether the condition allows the SET. A key with waiters or a running lock-delay is not free.
bool admits(Request& r, const SetOptions& o, const Keyspace::Found& f, bool live) {
  switch (o.condition) {
    case Condition::kIfAbsent:
      return is_free(r.ctx, r.c.db, f);
    case Condition::kIfPresent:
      return live;
    case Condition::kIfValue:
      return live ? passes(o.test, o.operand, value_of(*f)) : passes_without_value(o.test);
    case Condition::kNone:
      break;
  }
  return true;
}

// Sets the value and its expiry as the options say; a deadline in the past removes the key at once.
void set(Request& r, const SetOptions& o, std::optional<TimeMs> deadline, const Key& key,
         Keyspace::Found& f, std::string_view value) {
  if (!o.keep_ttl) {
    set_string(r, key, f, value, deadline.value_or(kNever));
    if (!deadline || !is_due(*deadline, r.now())) return;
    remove_key(r.ctx, {r.c.db, f}, End::kDeleted);
    return notify(r.ctx, kNotifyExpired, "expired", r.c.db, key.bytes);
  }
  const bool was_lock = f && type_of(*f) == EntryType::kLock;
  const TimeMs old_deadline = was_lock ? key_deadline(*f) : kNever;
  put_string(r.ctx, {r.c.db, f}, key, value, r.c.id);
  if (was_lock) set_key_deadline(r.ctx, {r.c.db, f}, old_deadline, r.c.id);
  notify(r.ctx, kNotifyString, "set", r.c.db, key.bytes);
}

// For MSETEX: whether the condition holds for all `count` keys.
bool admits_all(Request& r, const SetOptions& o, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Keyspace::Found f = find_any(r.ctx, r.c.db, r.keys().key(r.arg(2 + 2 * i)));
    if (!admits(r, o, f, f && type_of(*f) != EntryType::kNone)) return false;
  }
  return true;
}

// For MSETEX: reads the number of keys. Writes an error and returns nullopt if it does not fit.
std::optional<size_t> read_pair_count(Request& r) {
  const auto count = parse_int_in(r.arg(1), 1, std::numeric_limits<int32_t>::max());
  if (!count) return r.reply.error("ERR invalid numkeys value"), std::nullopt;
  if (static_cast<size_t>(*count) <= (r.argc() - 2) / 2) return static_cast<size_t>(*count);
  return r.reply.error("ERR wrong number of key-value pairs"), std::nullopt;
}

// Replies with the former value. A missing value is a miss, as with GET.
void reply_old(Request& r, std::string_view value, bool live) {
  if (live) return r.reply.bulk(value);
  notify(r.ctx, kNotifyKeyMiss, "keymiss", r.c.db, r.arg(1));
  r.reply.null();
}

// SETEX and PSETEX: key, time, value.
void set_for(Request& r, const ExpiryWord& word) {
  const auto deadline = read_expiry(r, word, r.arg(2));
  if (!deadline) return;
  const Key key = r.keys().key(r.arg(1));
  Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  set_string(r, key, f, r.arg(3), *deadline);
  r.reply.ok();
}

struct GetexOptions {
  bool persist = false;
  const ExpiryWord* expiry = nullptr;
  std::string_view expiry_text;
};

bool read_getex_options(Request& r, GetexOptions& o) {
  for (size_t i = 2; i < r.argc(); ++i) {
    const bool more = i + 1 < r.argc();
    const ExpiryWord* expiry = find_expiry_word(r.arg(i));
    const bool first = !o.persist && (o.expiry == nullptr || o.expiry == expiry);
    if (equals_ignore_case(r.arg(i), "PERSIST") && o.expiry == nullptr) {
      o.persist = true;
    } else if (expiry != nullptr && more && first) {
      o.expiry = expiry;
      o.expiry_text = r.arg(++i);
    } else {
      return reply_syntax_error(r), false;
    }
  }
  return true;
}

void expire_read(Request& r, Keyspace::Found& f, TimeMs deadline) {
  if (is_due(deadline, r.now())) {
    remove_key(r.ctx, {r.c.db, f}, End::kDeleted);
    return notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  }
  set_key_deadline(r.ctx, {r.c.db, f}, deadline, r.c.id);
  notify(r.ctx, kNotifyGeneric, "expire", r.c.db, r.arg(1));
}

}  // namespace

void cmd_set(Request& r) {
  SetOptions o;
  for (size_t i = 3; i < r.argc(); ++i) {
    if (!read_set_option(r, i, o)) return;
  }
  std::optional<TimeMs> deadline;
  if (o.expiry != nullptr) {
    deadline = read_expiry(r, *o.expiry, o.expiry_text);
    if (!deadline) return;
  }
  const Key key = r.keys().key(r.arg(1));
  Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  const bool live = f && type_of(*f) != EntryType::kNone;
  if (live && type_of(*f) != EntryType::kString && (o.get || o.condition == Condition::kIfValue)) {
    return reply_wrong_type(r);
  }
  if (live && !check_digest(r, o.test, o.operand)) return;
  // With GET the reply is the old value. It does not tell whether the new value was set.
  if (o.get) reply_old(r, live ? value_of(*f) : std::string_view(), live);
  const bool sets = admits(r, o, f, live);
  if (sets) set(r, o, deadline, key, f, r.arg(2));
  if (!o.get) sets ? r.reply.ok() : r.reply.null();
}

// All keys get the same expiry, or none is set.
void cmd_msetex(Request& r) {
  const auto count = read_pair_count(r);
  if (!count) return;
  SetOptions o;
  for (size_t i = 2 + 2 * *count; i < r.argc(); ++i) {
    if (!read_set_option(r, i, o)) return;
  }
  if (o.get || o.condition == Condition::kIfValue) return reply_syntax_error(r);
  std::optional<TimeMs> deadline;
  if (o.expiry != nullptr) {
    deadline = read_expiry(r, *o.expiry, o.expiry_text);
    if (!deadline) return;
  }
  if (!admits_all(r, o, *count)) return r.reply.integer(0);
  for (size_t i = 0; i < *count; ++i) {
    const Key key = r.keys().key(r.arg(2 + 2 * i));
    Keyspace::Found f = find_any(r.ctx, r.c.db, key);
    set(r, o, deadline, key, f, r.arg(3 + 2 * i));
  }
  r.reply.integer(1);
}

void cmd_setnx(Request& r) {
  const Key key = r.keys().key(r.arg(1));
  Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  if (!is_free(r.ctx, r.c.db, f)) return r.reply.integer(0);
  set_string(r, key, f, r.arg(2), kNever);
  r.reply.integer(1);
}

void cmd_setex(Request& r) { set_for(r, kExpiryWords[0]); }
void cmd_psetex(Request& r) { set_for(r, kExpiryWords[1]); }

void cmd_get(Request& r) {
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.null();
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  r.reply.bulk(value_of(*f));
}

void cmd_getset(Request& r) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  reply_old(r, s.value, s.live);
  set_string(r, s.key, s.found, r.arg(2), kNever);
}

void cmd_getdel(Request& r) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  reply_old(r, s.value, s.live);
  if (!s.live) return;
  remove_key(r.ctx, {r.c.db, s.found}, End::kDeleted);
  notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
}

void cmd_getex(Request& r) {
  GetexOptions o;
  if (!read_getex_options(r, o)) return;
  Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.null();
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  std::optional<TimeMs> deadline;
  if (o.expiry != nullptr) {
    deadline = read_expiry(r, *o.expiry, o.expiry_text);
    if (!deadline) return;
  }
  r.reply.bulk(value_of(*f));
  if (deadline) return expire_read(r, f, *deadline);
  if (!o.persist || deadline_of(*f) == kNever) return;
  set_key_deadline(r.ctx, {r.c.db, f}, kNever, r.c.id);
  notify(r.ctx, kNotifyGeneric, "persist", r.c.db, r.arg(1));
}

}  // namespace holdfast
