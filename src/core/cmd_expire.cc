// TTL, PTTL, EXPIRE, PEXPIRE, PERSIST.
#include <string>

#include "core/command.h"
#include "core/handlers.h"
#include "core/locks.h"

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
      r.reply.error(std::string("ERR Unsupported option ").append(word));
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

// A key without expiry counts as one that lives for ever.
bool admits(const ExpireConditions& c, TimeMs present, TimeMs wanted) {
  if (c.if_none && present != kNever) return false;
  if (c.if_any && present == kNever) return false;
  if (c.if_greater && wanted <= present) return false;
  return !c.if_less || wanted < present;
}

void expire_in(Request& r, int64_t unit_ms) {
  const auto value = parse_int(r.arg(2));
  if (!value) return reply_not_an_integer(r);
  const auto conditions = read_conditions(r);
  if (!conditions) return;
  if (*value > kMaxTtlMs / unit_ms || *value < -kMaxTtlMs / unit_ms) {
    return r.reply.error("ERR invalid expire time in '" + std::string(r.command.name) + "' command");
  }
  Keyspace::Found f = find_live(r.t, r.c.db, r.keys().key(r.arg(1)));
  if (!f) return r.reply.integer(0);
  const TimeMs deadline = r.now() + DurationMs{*value * unit_ms};
  if (!admits(*conditions, key_deadline(*f), deadline)) return r.reply.integer(0);
  if (is_due(deadline, r.now())) {
    remove_key(r.t, r.c.db, f, End::kDeleted);
  } else {
    set_key_deadline(r.t, r.c.db, f, deadline, r.c.id);
  }
  r.reply.integer(1);
}

// -2: no such key; -1: no expiry.
int64_t ms_to_live(Request& r) {
  const Keyspace::Found f = find_live(r.t, r.c.db, r.keys().key(r.arg(1)));
  if (!f) return -2;
  const TimeMs deadline = key_deadline(*f);
  return deadline == kNever ? -1 : (deadline - r.now()).count;
}

}  // namespace

void cmd_ttl(Request& r) {
  const int64_t ms = ms_to_live(r);
  r.reply.integer(ms < 0 ? ms : (ms + 500) / 1000);
}

void cmd_pttl(Request& r) { r.reply.integer(ms_to_live(r)); }
void cmd_expire(Request& r) { expire_in(r, 1000); }
void cmd_pexpire(Request& r) { expire_in(r, 1); }

void cmd_persist(Request& r) {
  Keyspace::Found f = find_live(r.t, r.c.db, r.keys().key(r.arg(1)));
  if (!f || key_deadline(*f) == kNever) return r.reply.integer(0);
  set_key_deadline(r.t, r.c.db, f, kNever, r.c.id);
  r.reply.integer(1);
}

}  // namespace holdfast
