// Enters ticketed requests, and ends attempts.
#include "core/lock/tickets.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/events/change_events.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/holds.h"
#include "core/lock/keys.h"
#include "core/lock/votes.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/key_ref.h"
#include "core/state/tickets.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

Waiter* waiter_of(const Context& ctx, DbIndex db, const Key& key, std::string_view slot) {
  const WaitQueue* q = ctx.s.queues.find(db, key);
  return q == nullptr ? nullptr : q->of_slot(slot);
}

// Whether what the server sends for the request goes to this connection from now on. A client that opens
// a connection beside another one uses the new one, and closes the old one when the new one has answered.
// What it had sent over the old one may arrive after that, and then the end of the old one.
bool moves_to(const Context& ctx, const Conn& c, const Waiter& w) {
  return has_left(ctx.s, w) || c.id.serial > w.conn.serial;
}

// The client sends for a request that is in the queue already.
void refresh(Context& ctx, Conn& c, Waiter* w, const TicketRequest& r) {
  Ticket& t = *w->ticket;
  if (moves_to(ctx, c, *w)) {
    leave_connection(ctx, w);
    w->conn = c.id;
    join_connection(ctx, c, w, {0}, false);
    t.leaves = kNever;
    t.asked = {-1};  // an inquiry on the other connection may be lost
    w->queue->next_inquiry = {0};
  }
  static_cast<LockTerms&>(*w) = static_cast<const LockTerms&>(r);
  if (r.seen) t.shown = std::max(t.shown, std::min(*r.seen, ctx.now.mono));
  if (r.time > t.time || (t.provisional && !r.provisional)) w->queue->asker = 0;  // ask again
  t.provisional = t.provisional && r.provisional;
  if (r.time > t.time) {  // a smaller one is from before it was raised, and late
    t.time = r.time;
    ctx.s.queues.set_time(w, r.time);
  }
  return_wait(ctx, w);
  ctx.s.queues.mark_ready(w->queue);
}

std::unique_ptr<Ticket> make_ticket(const Context& ctx, const TicketRequest& r, uint64_t floor) {
  auto t = std::make_unique<Ticket>();
  t->attempt = r.attempt;
  t->time = r.time;
  t->provisional = r.provisional;
  t->floor = floor;
  t->shown = ctx.now.mono;
  return t;
}

TicketOutcome outcome_of(Admission a) {
  switch (a) {
    case Admission::kDeadlock:
      return TicketOutcome::kDeadlock;
    case Admission::kTooMany:
      return TicketOutcome::kTooMany;
    case Admission::kTooManyOnKey:
      return TicketOutcome::kTooManyOnKey;
    default:
      return TicketOutcome::kQueued;
  }
}

// Enters a new request. The key need not exist: then a placeholder takes its place in the keyspace.
TicketOutcome enter(Context& ctx, Conn& c, const TicketRequest& r, uint64_t floor) {
  Keyspace::Found f = find_any(ctx, c.db, r.key);
  if (!f) f = ctx.keys(c.db).find_or_insert(r.key, EntryType::kNone, {}, ctx.now.mono).first;
  const Admission outcome = wait_for(ctx, c, r, f, false, make_ticket(ctx, r, floor)).outcome;
  if (!f->has_queue && type_of(*f) == EntryType::kNone) ctx.keys(c.db).erase(f);  // beyond the limit
  return outcome_of(outcome);
}

// A hold from the data folder may have been a vote, whose request was lost with the queue.
bool may_be_vote(const Context& ctx, const OneHold& own) { return own.renewed <= ctx.s.tickets.loaded_at; }

// Extends the vote if the client counts it; it never ends sooner by that.
void extend_counted(Context& ctx, Waiter* w, const TicketRequest& r, ConnId client) {
  Keyspace::Found f = find_live(ctx, w->queue->db, w->queue->key());
  const auto own = f ? hold_of(*f, w->owner) : std::nullopt;
  if (own && w->has_vote() && w->ticket->vote == r.counted)
    extend_hold(ctx, {w->queue->db, f}, own->holder, r.ttl, client);
}

TicketAnswer answer_for(Context& ctx, Waiter* w) {
  Ticket& t = *w->ticket;
  if (w->has_vote()) {
    const Keyspace::Found f = find_live(ctx, w->queue->db, w->queue->key());
    return {TicketOutcome::kVote, t.vote, vote_since(ctx, hold_of(*f, w->owner)->deadline, w->ttl),
            t.floor};
  }
  if (!std::exchange(t.was_queued, true)) lock_event(ctx, w->queue->key_bytes, "queued", w->owner);
  return {TicketOutcome::kQueued, {}, {}, t.floor};
}

TicketAnswer refused(TicketOutcome why) {
  TicketAnswer a;
  a.outcome = why;
  return a;
}

// Ends the hold of the attempt, or of one before it. `known`: those that are over already have no hold.
void end_hold_of(Context& ctx, DbIndex db, const Key& key, const Attempt& attempt,
                 std::optional<uint64_t> known, bool owes) {
  constexpr uint64_t kMostLookedAt = 64;
  Keyspace::Found f = find_live(ctx, db, key);
  if (!f || !is_hold(*f)) return;
  const auto owe = [&](uint64_t number) {
    if (owes) ctx.s.tickets.relay.owe({db, key}, {attempt.slot, number});
  };
  if (type_of(*f) == EntryType::kString) {
    if (!value_of(*f).starts_with(attempt.slot)) return;
    const auto held = read_attempt(value_of(*f));
    if (!held || held->slot != attempt.slot || held->number > attempt.number) return;
    owe(held->number);
    return remove_key(ctx, {db, f}, End::kReleased);
  }
  const uint64_t first = known ? *known + 1 : 0;
  for (uint64_t n = 0; n < kMostLookedAt && n <= attempt.number - first; ++n) {
    const uint64_t number = attempt.number - n;
    const Holder* h = lock_body_of(*f)->find(owner_of({attempt.slot, number}));
    if (h == nullptr) continue;
    owe(number);
    return end_holder(ctx, {db, f}, h, End::kReleased, ctx.now.mono);
  }
}

}  // namespace

TicketAnswer ask_by_ticket(Context& ctx, Conn& c, const TicketRequest& r) {
  Tickets& tickets = ctx.s.tickets;
  hear_client(ctx, c, r.seen);
  for (const Attempt& a : r.over) end_attempts(ctx, c.db, r.key, a, EndedBy::kOther);
  if (tickets.relay.is_over({c.db, r.key}, r.attempt)) return refused(TicketOutcome::kOver);
  if (r.attempt.number > 0)
    end_attempts(ctx, c.db, r.key, {r.attempt.slot, r.attempt.number - 1}, EndedBy::kLater);
  const Keyspace::Found f = find_any(ctx, c.db, r.key);
  if (f && is_collection(*f)) return refused(TicketOutcome::kWrongType);
  Waiter* w = waiter_of(ctx, c.db, r.key, r.attempt.slot);
  if (w != nullptr && w->owner != r.owner) return refused(TicketOutcome::kOver);  // a later attempt waits
  const auto own = f ? hold_of(*f, r.owner) : std::nullopt;
  if ((own && own->capacity != r.capacity) || (w != nullptr && w->capacity != r.capacity))
    return refused(TicketOutcome::kOtherMode);
  const uint64_t floor = tickets.floors.of(r.key);
  if (own && w == nullptr && !may_be_vote(ctx, *own)) {
    tickets.floors.raise(r.key, r.time);
    return {TicketOutcome::kHeld, own->token, vote_since(ctx, own->deadline, r.ttl), floor};
  }
  if (w == nullptr) {
    const TicketOutcome outcome = enter(ctx, c, r, floor);
    if (outcome != TicketOutcome::kQueued) return refused(outcome);
    w = waiter_of(ctx, c.db, r.key, r.attempt.slot);
  } else {
    refresh(ctx, c, w, r);
  }
  tickets.floors.raise(r.key, r.time);
  w->ticket->in_request = true;
  if (own) adopt_hold(ctx, w);
  extend_counted(ctx, w, r, c.id);
  serve_ready_queues(ctx);
  w->ticket->in_request = false;
  return answer_for(ctx, w);
}

void end_attempts(Context& ctx, DbIndex db, const Key& key, const Attempt& attempt, EndedBy by) {
  const auto known = ctx.s.tickets.relay.add({db, key}, attempt, by != EndedBy::kLater);
  if (known && *known >= attempt.number) return;
  end_wait(ctx, db, key, attempt);
  end_hold_of(ctx, db, key, attempt, known, by == EndedBy::kOther);
}

void end_wait(Context& ctx, DbIndex db, const Key& key, const Attempt& attempt) {
  Waiter* w = waiter_of(ctx, db, key, attempt.slot);
  if (w != nullptr && w->ticket->attempt.number <= attempt.number) cancel_wait(ctx, w, WaitEnd::kUnblocked);
}

bool yield_vote(Context& ctx, DbIndex db, const Key& key, std::string_view owner, Token token) {
  Keyspace::Found f = find_live(ctx, db, key);  // first, as the vote may have expired
  const auto attempt = read_attempt(owner);
  const Waiter* w = f && attempt ? waiter_of(ctx, db, key, attempt->slot) : nullptr;
  if (w == nullptr || w->owner != owner || !w->has_vote() || w->ticket->vote != token) return false;
  const auto own = hold_of(*f, owner);
  if (!own) return false;
  if (own->holder != nullptr) {
    end_holder(ctx, {db, f}, own->holder, End::kReleased, ctx.now.mono);
  } else {
    remove_key(ctx, {db, f}, End::kReleased);
  }
  return true;
}

void confirm_vote(Context& ctx, DbIndex db, const Key& key, std::string_view owner) {
  const auto attempt = read_attempt(owner);
  Waiter* w = attempt ? waiter_of(ctx, db, key, attempt->slot) : nullptr;
  if (w != nullptr && w->owner == owner && w->has_vote()) cancel_wait(ctx, w, WaitEnd::kGranted);
}

}  // namespace holdfast
