// LOCK, RENEW, UNLOCK, FENCE.
#include <algorithm>
#include <string>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/handlers/lock_options.h"
#include "core/handlers/ticket_requests.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/lock/tickets.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/state/stats.h"
#include "core/state/tickets.h"

namespace holdfast {

namespace {

// Returns an unguessable owner: 32 random hex digits (128 bits).
std::string make_owner(const Request& r) {
  uint8_t bytes[16];
  r.s().config.random(bytes);
  std::string owner;
  append_hex(owner, bytes);
  return owner;
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
      if (request.async) r.reply.simple("QUEUED");
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

// Sets the options of the request. Writes an error and returns false if one is invalid.
bool set_options(Request& r, LockRequest& request, LockWords& o) {
  if (!read_lock_options(r, o)) return false;
  if (o.shared) request.capacity = kShared;
  if (o.limit) request.capacity = {static_cast<uint32_t>(*o.limit)};
  if (o.wait_ms && r.may_block) request.wait = DurationMs{*o.wait_ms};
  request.delay = {o.delay_ms.value_or(0)};
  request.session = o.session;
  request.async = o.async;
  request.note = o.note;
  request.hint = static_cast<uint64_t>(o.token.value_or(0));
  return request.hint == 0 || check_new_token(r, request.key, request.hint, o.ticket ? "AHEAD" : "ERR");
}

// Hands a request to the proxy of this engine.
void lock_elsewhere(Request& r, const LockRequest& request, bool owner_made, bool ticket) {
  RemoteLock lock;
  lock.conn = r.c.id;
  lock.db = r.s().db_name[r.c.db];
  lock.key = request.key.bytes;
  lock.owner = request.owner;
  lock.owner_made = owner_made;
  lock.ttl = request.ttl;
  lock.limit = request.capacity == kShared ? RemoteLock::kNoLimit : request.capacity.count;
  lock.wait = request.wait;
  lock.delay = request.delay;
  lock.session = request.session;
  lock.async = request.async;
  lock.note = request.note.value_or(std::string_view());
  lock.hint = request.hint;
  lock.ticket = ticket;
  r.s().config.remote.lock(lock);
  r.c.remote = true;
}

void release(Request& r, OwnHold& own) {
  if (own.holder != nullptr) {
    end_holder(r.ctx, {r.c.db, own.entry}, own.holder, End::kReleased, r.now());
  } else {
    remove_key(r.ctx, {r.c.db, own.entry}, End::kReleased);
  }
  r.reply.integer(1);
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
  const bool remote = static_cast<bool>(r.s().config.remote.lock);
  const bool owner_made = !generated.empty();
  if (r.argc() > 4) {
    LockWords o;
    if (!set_options(r, request, o)) return;
    if (o.ticket && remote) return lock_elsewhere(r, request, owner_made, true);
    if (o.ticket) return lock_by_ticket(r, request, o);
  }
  if (remote) return lock_elsewhere(r, request, owner_made, false);
  reply_acquisition(r, request, acquire(r.ctx, r.c, request));
}

void cmd_renew(Request& r) {
  if (r.argc() == 6) return renew_with_token(r);
  if (r.argc() > 4) return reply_wrong_arity(r);
  std::optional<DurationMs> ttl;
  if (r.argc() == 4) {
    const auto given = read_number(r, 3, "ttl", 0, kMaxTtlMs);
    if (!given) return;
    ttl = DurationMs{*given};
  }
  OwnHold own = find_own_hold(r, r.keys().key(r.arg(1)), r.arg(2));
  if (!own.held) return reply_not_held(r, own);
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
  const Key key = r.keys().key(r.arg(1));
  OwnHold own = find_own_hold(r, key, r.arg(2));
  const auto attempt = read_attempt(r.arg(2));
  if (attempt) end_wait(r.ctx, r.c.db, key, *attempt);  // before its vote ends: it would wait again
  if (own.held) {
    release(r, own);
  } else if (!attempt || !r.s().tickets.relay.settle({r.c.db, key}, *attempt)) {
    reply_not_held(r, own);
  } else {
    r.reply.integer(1);
  }
  if (attempt) end_attempts(r.ctx, r.c.db, key, *attempt, EndedBy::kOwner);
}

void cmd_fence(Request& r) {
  const auto wanted = read_number(r, 3, "token", 0, static_cast<int64_t>(kMaxToken));
  if (!wanted) return;
  const Key key = r.keys().key(r.arg(1));
  const Token token{static_cast<uint64_t>(*wanted)};
  if (!check_raised_token(r, key, token.value, "ERR")) return;
  OwnHold own = find_own_hold(r, key, r.arg(2));
  if (!own.held) return reply_not_held(r, own);
  const Token present =
      own.holder != nullptr ? own.holder->token : exclusive_token(r.ctx, {r.c.db, own.entry});
  const Token raised = std::max(present, token);
  if (raised > present) raise_token(r.ctx, {r.c.db, own.entry}, own.holder, raised);
  r.reply.integer(static_cast<int64_t>(raised.value));
}

}  // namespace holdfast
