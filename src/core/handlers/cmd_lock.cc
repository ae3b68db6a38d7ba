// LOCK, RENEW, UNLOCK, FENCE.
#include <algorithm>
#include <string>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"

namespace holdfast {

namespace {

constexpr std::string_view kDeadlockText =
    "DEADLOCK deadlock detected: the owner would wait for itself; release its locks and retry";

// The options of LOCK, in any order, each at most once.
struct LockOptions {
  bool shared = false;
  std::optional<int64_t> limit, wait_ms, delay_ms, token;
  bool session = false;
  bool async = false;
  bool next = false;
  bool quiet = false;
  bool behind = false;
  std::optional<std::string_view> note;
};

bool set_flag(bool& flag) { return !std::exchange(flag, true); }

// Writes an error and returns false if the note is too long.
bool read_note(Request& r, std::string_view note, LockOptions& o) {
  o.note = note;
  if (note.size() <= kMaxNoteBytes) return true;
  r.reply.error("ERR NOTE must be at most " + std::to_string(kMaxNoteBytes) + " bytes");
  return false;
}

// Reads the option at `i`, and moves `i` to its last argument. Writes an error and returns false if it is
// invalid.
bool read_lock_option(Request& r, size_t& i, LockOptions& o) {
  struct Numbered {
    std::string_view word;
    std::optional<int64_t>& value;
    int64_t lowest, highest;
  };
  const Numbered numbered[] = {{"WAIT", o.wait_ms, 0, kMaxTtlMs},
                               {"LIMIT", o.limit, 1, INT32_MAX},
                               {"DELAY", o.delay_ms, 0, kMaxTtlMs},
                               {"TOKEN", o.token, 0, static_cast<int64_t>(kMaxToken)}};
  const std::string_view word = r.arg(i);
  for (const Numbered& n : numbered) {
    if (!equals_ignore_case(word, n.word)) continue;
    if (n.value || i + 1 >= r.argc()) break;
    n.value = read_number(r, ++i, n.word, n.lowest, n.highest);
    return n.value.has_value();
  }
  if (equals_ignore_case(word, "SHARED") && set_flag(o.shared)) return true;
  if (equals_ignore_case(word, "SESSION") && set_flag(o.session)) return true;
  if (equals_ignore_case(word, "ASYNC") && set_flag(o.async)) return true;
  if (equals_ignore_case(word, "NEXT") && set_flag(o.next)) return true;
  if (equals_ignore_case(word, "QUIET") && set_flag(o.quiet)) return true;
  if (equals_ignore_case(word, "BEHIND") && set_flag(o.behind)) return true;
  if (equals_ignore_case(word, "NOTE") && !o.note && i + 1 < r.argc()) return read_note(r, r.arg(++i), o);
  reply_syntax_error(r);
  return false;
}

// Reads all options. Writes an error and returns false if one is invalid.
bool read_lock_options(Request& r, LockOptions& o) {
  for (size_t i = 4; i < r.argc(); ++i) {
    if (!read_lock_option(r, i, o)) return false;
  }
  if ((o.shared && o.limit) || (o.async && !o.wait_ms) || ((o.next || o.quiet || o.behind) && !o.async)) {
    reply_syntax_error(r);
    return false;
  }
  if (o.async && !o.quiet && r.c.protocol < 3) {
    r.reply.error("ERR ASYNC needs RESP3: send HELLO 3 first");
    return false;
  }
  return true;
}

// Returns the largest token that a client may set for a key (max-token-lead). It derives from values that
// clients cannot change, so that repeated requests do not raise it.
uint64_t furthest_token(const Request& r, const Key& key) {
  const Config& config = r.s().config;
  const auto clock_us = static_cast<uint64_t>(std::max<int64_t>(r.ctx.now.wall_us, 0));
  const uint64_t lead_us = static_cast<uint64_t>(config.max_token_lead.count) * 1000;
  return std::max(std::max(clock_us, config.token_floor) + lead_us, r.s().tokens.last(key) + 1);
}

// Whether FENCE may exceed that limit, to catch up with another server whose tokens are ahead. This needs
// permission for LOCKS RAISE.
bool may_raise(const Request& r) {
  if (r.command.handler != cmd_fence) return false;
  const std::string_view argv[] = {"locks", "raise", r.arg(1), r.arg(3)};
  return check_permission(r.s(), *r.c.user, *find_row(argv), argv).allowed();
}

// Returns whether a client may set the token. Writes an error if not.
bool check_token(Request& r, const Key& key, uint64_t token) {
  const bool far = token > furthest_token(r, key);
  if (token > kLastNamedToken || (far && !may_raise(r))) {
    r.reply.error("ERR token is further ahead than max-token-lead allows");
    return false;
  }
  if (far || r.s().tokens.fits(key, token, near_token(r.s().config, r.ctx.now))) return true;
  reply_too_many_ahead(r);
  return false;
}

bool check_owner(Request& r, std::string_view owner) {
  const uint32_t most = r.s().config.limits.owner_bytes;
  if (!owner.empty() && owner.size() <= most) return true;
  r.reply.error("ERR owner must be 1 to " + std::to_string(most) + " bytes");
  return false;
}

// Returns an unguessable owner: 32 random hex digits (128 bits).
std::string make_owner(const Request& r) {
  uint8_t bytes[16];
  r.s().config.random(bytes);
  std::string owner;
  append_hex(owner, bytes);
  return owner;
}

// A QUIET request that waits has its reply in front of the connection's next output. CLIENT REPLY removes
// the reply, and not that of a later request.
void reply_queued(Request& r, const LockRequest& request) {
  if (request.quiet && r.c.reply_mode == ReplyMode::kOn) {
    ++r.c.quiet_replies;
  } else {
    r.reply.simple("QUEUED");
  }
}

void reply_acquisition(Request& r, const LockRequest& request, const Acquisition& a) {
  switch (a.outcome) {
    case Admission::kGranted:
      r.reply.array(2);
      r.reply.bulk(request.owner);
      r.reply.integer(static_cast<int64_t>(a.token.value));
      break;
    case Admission::kBusy:
      r.reply.null_array();
      break;
    case Admission::kWaiting:
      if (request.async) reply_queued(r, request);
      break;
    case Admission::kDeadlock:
      r.reply.error(kDeadlockText);
      break;
    case Admission::kTooMany:
      r.reply.error("ERR too many waiters, see max-waiters");
      break;
    case Admission::kTooManyOnKey:
      r.reply.error("ERR too many waiters for this key, see max-waiters-per-key");
      break;
    case Admission::kWrongType:
      reply_wrong_type(r);
      break;
  }
}

// The hold that RENEW, UNLOCK and FENCE refer to. `held`: false if the owner has none; the reply has then
// been written.
struct OwnHold {
  bool held = false;
  Keyspace::Found entry;
  const Holder* holder = nullptr;  // null: the exclusive hold of a string
};

OwnHold find_own_hold(Request& r, const Key& key, std::string_view owner) {
  OwnHold own;
  own.entry = find_live(r.ctx, r.c.db, key);
  if (!own.entry) {
    r.reply.integer(0);
    return own;
  }
  if (type_of(*own.entry) == EntryType::kLock) {
    own.holder = lock_body_of(*own.entry)->find(owner);
    own.held = own.holder != nullptr;
  } else if (is_collection(*own.entry)) {
    reply_wrong_type(r);
    return own;
  } else {
    own.held = value_of(*own.entry) == owner;
  }
  if (!own.held) r.reply.integer(-1);
  return own;
}

// Sets the options of the request. Writes an error and returns false if one is invalid.
bool set_options(Request& r, LockRequest& request) {
  LockOptions o;
  if (!read_lock_options(r, o)) return false;
  if (o.shared) request.capacity = kShared;
  if (o.limit) request.capacity = {static_cast<uint32_t>(*o.limit)};
  if (o.wait_ms && r.may_block) request.wait = DurationMs{*o.wait_ms};
  request.delay = {o.delay_ms.value_or(0)};
  request.session = o.session;
  request.async = o.async;
  request.next = o.next;
  request.quiet = o.quiet;
  request.behind = o.behind;
  request.note = o.note;
  request.hint = static_cast<uint64_t>(o.token.value_or(0));
  return request.hint == 0 || check_token(r, request.key, request.hint);
}

}  // namespace

void cmd_lock(Request& r) {
  const std::string generated = r.arg(2) == "*" ? make_owner(r) : std::string();
  LockRequest request;
  request.owner = generated.empty() ? r.arg(2) : generated;
  if (!check_owner(r, request.owner)) return;
  const auto ttl = read_number(r, 3, "ttl", 0, kMaxTtlMs);
  if (!ttl) return;
  request.key = r.keys().key(r.arg(1));
  request.ttl = {*ttl};
  request.returns = generated.empty();
  if (r.argc() > 4 && !set_options(r, request)) return;
  if (request.behind && is_free(r.ctx, r.c.db, find_any(r.ctx, r.c.db, request.key)))
    return r.reply.simple("FREE");
  reply_acquisition(r, request, acquire(r.ctx, r.c, request));
}

void cmd_renew(Request& r) {
  if (r.argc() > 4) return reply_wrong_arity(r);
  std::optional<DurationMs> ttl;
  if (r.argc() == 4) {
    const auto given = read_number(r, 3, "ttl", 0, kMaxTtlMs);
    if (!given) return;
    ttl = DurationMs{*given};
  }
  OwnHold own = find_own_hold(r, r.keys().key(r.arg(1)), r.arg(2));
  if (!own.held) return;
  renew_hold(r.ctx, {r.c.db, own.entry}, own.holder, ttl, r.c.id);
  ++r.s().stats.locks.renewals;
  r.reply.integer(1);
}

void cmd_unlock(Request& r) {
  if (r.argc() > 4) return reply_wrong_arity(r);
  if (r.argc() == 4) {
    if (!equals_ignore_case(r.arg(3), "WAITS")) return reply_wrong_arity(r);
    end_waits_of_owner(r.ctx, r.c.db, r.keys().key(r.arg(1)), r.arg(2));
  }
  OwnHold own = find_own_hold(r, r.keys().key(r.arg(1)), r.arg(2));
  if (!own.held) return;
  if (own.holder != nullptr) {
    end_holder(r.ctx, {r.c.db, own.entry}, own.holder, End::kReleased, r.now());
  } else {
    remove_key(r.ctx, {r.c.db, own.entry}, End::kReleased);
  }
  r.reply.integer(1);
}

void cmd_fence(Request& r) {
  const auto wanted = read_number(r, 3, "token", 0, static_cast<int64_t>(kMaxToken));
  if (!wanted) return;
  const Key key = r.keys().key(r.arg(1));
  const Token token{static_cast<uint64_t>(*wanted)};
  if (!check_token(r, key, token.value)) return;
  OwnHold own = find_own_hold(r, key, r.arg(2));
  if (!own.held) return;
  const Token present =
      own.holder != nullptr ? own.holder->token : exclusive_token(r.ctx, {r.c.db, own.entry});
  const Token raised = std::max(present, token);
  if (raised > present) raise_token(r.ctx, {r.c.db, own.entry}, own.holder, raised);
  r.reply.integer(static_cast<int64_t>(raised.value));
}

}  // namespace holdfast
