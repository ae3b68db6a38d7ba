// EXPIRE and its forms, TTL and its forms, PERSIST.
#include <limits>
#include <string>

#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/expire_words.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

struct ExpireConditions {
  bool if_none = false;     // NX
  bool if_any = false;      // XX
  bool if_greater = false;  // GT
  bool if_less = false;     // LT
};

std::optional<ExpireConditions> read_conditions(Request& r) {
  ExpireConditions c;
  for (size_t i = 3; i < r.argc(); ++i) {
    const std::string_view word = r.arg(i);
    if (equals_ignore_case(word, "NX")) {
      c.if_none = true;
    } else if (equals_ignore_case(word, "XX")) {
      c.if_any = true;
    } else if (equals_ignore_case(word, "GT")) {
      c.if_greater = true;
    } else if (equals_ignore_case(word, "LT")) {
      c.if_less = true;
    } else {
      r.reply.error(std::string("ERR Unsupported option ").append(word.substr(0, word.find('\0'))));
      return std::nullopt;
    }
  }
  if (c.if_none && (c.if_any || c.if_greater || c.if_less)) {
    r.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return std::nullopt;
  }
  if (c.if_greater && c.if_less) {
    r.reply.error("ERR GT and LT options at the same time are not compatible");
    return std::nullopt;
  }
  return c;
}

// A key without an expiry counts as a key with an infinite one.
bool admits(const ExpireConditions& c, TimeMs present, TimeMs wanted) {
  if (c.if_none && present != kNever) return false;
  if (c.if_any && present == kNever) return false;
  if (c.if_greater && wanted <= present) return false;
  return !c.if_less || wanted < present;
}

// Reads the deadline. Unlike in SET, a time in the past is not an error: it removes the key. Writes an
// error and returns nullopt if the argument is not a valid time.
std::optional<TimeMs> read_deadline(Request& r, const ExpiryWord& word) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto value = parse_int(r.arg(2));
  if (!value) return reply_not_an_integer(r), std::nullopt;
  const int64_t base_ms = word.absolute ? 0 : r.ctx.now.wall_us / 1000;
  const bool countable =
      word.unit_ms == 1 || (*value <= kMax / word.unit_ms && *value >= -(kMax / word.unit_ms));
  if (!countable || *value * word.unit_ms > kMax - base_ms) return reply_invalid_expiry(r), std::nullopt;
  // A time before 1970 is treated as 1970: both are in the past.
  return deadline_at(r, word.absolute ? std::max<int64_t>(*value * word.unit_ms, 0) : *value * word.unit_ms,
                     word.absolute);
}

void expire(Request& r, const ExpiryWord& word) {
  const auto conditions = read_conditions(r);
  if (!conditions) return;
  const auto deadline = read_deadline(r, word);
  if (!deadline) return;
  Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  if (!f || !admits(*conditions, key_deadline(*f), *deadline)) return r.reply.integer(0);
  if (is_due(*deadline, r.now())) {
    remove_key(r.ctx, {r.c.db, f}, End::kDeleted);
    notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  } else {
    set_key_deadline(r.ctx, {r.c.db, f}, *deadline, r.c.id);
    notify(r.ctx, kNotifyGeneric, "expire", r.c.db, r.arg(1));
  }
  r.reply.integer(1);
}

// Replies with f(deadline); with -2 if there is no such key, with -1 if it has no expiry.
template <class F>
void reply_deadline(Request& r, F f) {
  const Keyspace::Found found = find_to_read(r, r.arg(1));
  if (!found) return r.reply.integer(-2);
  const TimeMs deadline = key_deadline(*found);
  r.reply.integer(deadline == kNever ? -1 : f(deadline));
}

int64_t to_seconds(int64_t ms) { return (ms + 500) / 1000; }

}  // namespace

void cmd_expire(Request& r) { expire(r, kExpiryWords[0]); }
void cmd_pexpire(Request& r) { expire(r, kExpiryWords[1]); }
void cmd_expireat(Request& r) { expire(r, kExpiryWords[2]); }
void cmd_pexpireat(Request& r) { expire(r, kExpiryWords[3]); }

void cmd_ttl(Request& r) {
  reply_deadline(r, [&](TimeMs deadline) { return to_seconds((deadline - r.now()).count); });
}
void cmd_pttl(Request& r) {
  reply_deadline(r, [&](TimeMs deadline) { return (deadline - r.now()).count; });
}
void cmd_expiretime(Request& r) {
  reply_deadline(r, [&](TimeMs deadline) { return to_seconds(r.ctx.now.to_wall_ms(deadline)); });
}
void cmd_pexpiretime(Request& r) {
  reply_deadline(r, [&](TimeMs deadline) { return r.ctx.now.to_wall_ms(deadline); });
}

void cmd_persist(Request& r) {
  Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  if (!f || key_deadline(*f) == kNever) return r.reply.integer(0);
  set_key_deadline(r.ctx, {r.c.db, f}, kNever, r.c.id);
  notify(r.ctx, kNotifyGeneric, "persist", r.c.db, r.arg(1));
  r.reply.integer(1);
}

}  // namespace holdfast
