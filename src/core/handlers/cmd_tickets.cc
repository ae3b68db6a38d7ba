// Waits by ticket: LOCK ... TICKET, RENEW ... TOKEN, LOCKS YIELD, LOCKS HEARTBEAT.
#include <string>
#include <utility>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/handlers/ticket_requests.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/lock/tickets.h"
#include "core/lock/votes.h"
#include "core/state/conn.h"
#include "core/state/stats.h"
#include "core/state/tickets.h"

namespace holdfast {

namespace {

void reply_ticket(Request& r, const TicketRequest& t, std::string_view state, const TicketAnswer& a) {
  r.reply.array(6);
  r.reply.bulk(state);
  r.reply.integer(static_cast<int64_t>(a.token.value));
  r.reply.integer(a.since.count);
  r.reply.integer(r.now().count);
  r.reply.integer(static_cast<int64_t>(a.floor));
  const auto over = r.s().tickets.relay.newest({r.c.db, t.key}, kMostOverTold, t.attempt.slot);
  r.reply.array(over.size());
  for (const Attempt& attempt : over) r.reply.bulk(owner_of(attempt));
}

void reply_answer(Request& r, const TicketRequest& t, const TicketAnswer& a) {
  switch (a.outcome) {
    case TicketOutcome::kVote:
      return reply_ticket(r, t, "vote", a);
    case TicketOutcome::kQueued:
      return reply_ticket(r, t, "queued", a);
    case TicketOutcome::kHeld:
      return reply_ticket(r, t, "held", a);
    case TicketOutcome::kOver:
      return r.reply.error("OVER the owner, or a later attempt of its slot, is over");
    case TicketOutcome::kTooMany:
      return r.reply.error("FULL too many waiters, see max-waiters");
    case TicketOutcome::kTooManyOnKey:
      return r.reply.error("FULL too many waiters for this key, see max-waiters-per-key");
    case TicketOutcome::kDeadlock:
      return r.reply.error(kDeadlockText);
    case TicketOutcome::kOtherMode:
      return r.reply.error("ERR the owner holds the lock, or waits for it, in another mode");
    case TicketOutcome::kWrongType:
      return reply_wrong_type(r);
  }
}

std::optional<TimeMs> seen_time(const std::optional<int64_t>& ms) {
  return ms ? std::optional(TimeMs{*ms}) : std::nullopt;
}

}  // namespace

void lock_by_ticket(Request& r, const LockRequest& request, const LockWords& o) {
  if (!r.may_block) return r.reply.error("ERR TICKET is not allowed in a transaction or a script");
  const auto attempt = read_attempt(request.owner);
  if (!attempt) return r.reply.error("ERR TICKET needs an owner of the form <slot>.<number>");
  if (request.ttl.count == 0)
    return r.reply.error("ERR ttl must be an integer from 1 to " + std::to_string(kMaxTtlMs));
  const auto time = static_cast<uint64_t>(*o.ticket);
  if (!check_ticket_time(r, request.key, time)) return;
  TicketRequest t;
  static_cast<LockRequest&>(t) = request;
  t.attempt = *attempt;
  t.time = time;
  t.provisional = o.provisional;
  t.counted = {static_cast<uint64_t>(o.has.value_or(0))};
  t.seen = seen_time(o.seen_ms);
  t.over = o.over;
  t.returns = false;
  reply_answer(r, t, ask_by_ticket(r.ctx, r.c, t));
}

void renew_with_token(Request& r) {
  if (!equals_ignore_case(r.arg(4), "TOKEN")) return reply_wrong_arity(r);
  const auto ttl = read_number(r, 3, "ttl", 0, kMaxTtlMs);
  if (!ttl) return;
  const auto wanted = read_number(r, 5, "token", 0, static_cast<int64_t>(kMaxToken));
  if (!wanted) return;
  const Key key = r.keys().key(r.arg(1));
  const Token token{static_cast<uint64_t>(*wanted)};
  if (!check_raised_token(r, key, token.value, "AHEAD")) return;
  OwnHold own = find_own_hold(r, key, r.arg(2));
  if (!own.held) return reply_not_held(r, own);
  const KeyRef k{r.c.db, own.entry};
  const Token present = own.holder != nullptr ? own.holder->token : exclusive_token(r.ctx, k);
  if (present > token) return r.reply.integer(static_cast<int64_t>(present.value));
  if (present < token) raise_token(r.ctx, k, own.holder, token);
  extend_hold(r.ctx, k, own.holder, {*ttl}, r.c.id);
  confirm_vote(r.ctx, r.c.db, key, r.arg(2));
  ++r.s().stats.locks.renewals;
  r.reply.integer(static_cast<int64_t>(token.value));
}

void cmd_locks_yield(Request& r) {
  const auto token = read_number(r, 4, "token", 0, static_cast<int64_t>(kMaxToken));
  if (!token) return;
  const Token vote{static_cast<uint64_t>(*token)};
  r.reply.integer(yield_vote(r.ctx, r.c.db, r.keys().key(r.arg(2)), r.arg(3), vote) ? 1 : 0);
}

void cmd_locks_heartbeat(Request& r) {
  if (r.argc() > 3) return reply_syntax_error(r);
  std::optional<int64_t> seen_ms;
  if (r.argc() == 3) {
    seen_ms = read_number(r, 2, "milliseconds", 0, kMaxTtlMs);
    if (!seen_ms) return;
  }
  hear_client(r.ctx, r.c, seen_time(seen_ms));
  r.reply.array(2);
  r.reply.bulk(r.s().config.run_id);
  r.reply.integer(r.now().count);
}

}  // namespace holdfast
