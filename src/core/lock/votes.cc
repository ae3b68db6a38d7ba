// The life of votes: who may have one, and when the server asks for it.
#include "core/lock/votes.h"

#include <algorithm>
#include <memory>

#include "core/codec/reply.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/relay.h"
#include "core/state/tickets.h"

namespace holdfast {

namespace {

// So many requests of one client are returned at once. It may have 100,000.
constexpr size_t kMostReturned = 100;

TicketClient& client_of(const Context& ctx, const Waiter& w) { return *ctx.s.conns.at(w.conn).tickets; }

// The last time at which the request is eligible, if its client is not heard before.
TimeMs eligible_until(const Context& ctx, const Waiter& w) {
  constexpr TimeMs kNot{-kMaxTtlMs};
  if (has_left(ctx.s, w)) return kNot;
  const TicketClient& t = client_of(ctx, w);
  if (t.heard < w.ticket->stale_since) return kNot;
  return std::min(t.heard + kPatience, std::max(t.seen, w.ticket->shown) + kHearing);
}

// The request of the owner that has a vote in the queue of the key; null if there is none.
Waiter* voter(const Context& ctx, KeyRef k, std::string_view owner) {
  if (ctx.s.queues.ticketed() == 0 || owner.size() > kMostOwnerBytes) return nullptr;
  const auto attempt = read_attempt(owner);
  if (!attempt) return nullptr;
  const WaitQueue* q = ctx.s.queues.find(k.db, ctx.keys(k.db).key(key_of(*k)));
  Waiter* w = q == nullptr ? nullptr : q->of_slot(attempt->slot);
  return w != nullptr && w->has_vote() && w->owner == owner ? w : nullptr;
}

void push_vote(Context& ctx, const Waiter& w, TimeMs deadline) {
  const WaitQueue& q = *w.queue;
  Reply push = open_push(ctx, ctx.s.conns.at(w.conn), 9, "vote", w);
  push.integer(static_cast<int64_t>(w.ticket->vote.value));
  push.integer(vote_since(ctx, deadline, w.ttl).count);
  push.integer(ctx.now.mono.count);
  push.integer(static_cast<int64_t>(w.ticket->floor));
  const auto over = ctx.s.tickets.relay.newest({q.db, q.key()}, kMostOverTold, w.ticket->attempt.slot);
  push.array(over.size());
  for (const Attempt& attempt : over) push.bulk(owner_of(attempt));
}

void take_vote(Context& ctx, Waiter* w, Token token, TimeMs deadline) {
  Ticket& t = *w->ticket;
  t.vote = token;
  t.asked = {-1};
  leave_client(ctx, w);
  ctx.s.queues.set_group(w, Rank::Group::kVotes);
  w->queue->next_inquiry = {0};
  if (!t.in_request && !has_left(ctx.s, *w)) push_vote(ctx, *w, deadline);
}

void drop_vote(Context& ctx, Waiter* w) {
  w->ticket->vote = {};
  ctx.s.queues.set_group(w, w->linked ? Rank::Group::kInLine : Rank::Group::kSetAside);
  ctx.s.queues.mark_ready(w->queue);
  if (!w->linked && is_due(w->ticket->leaves, ctx.now.mono)) ctx.s.timers.set(w, ctx.now.mono);
}

// The first request in line that may ask for votes. Those that may not are few, or their clients are
// silent.
const Waiter* find_asker(const Context& ctx, const WaitQueue& q, const Waiter* head) {
  constexpr size_t kMostLookedAt = 16;
  if (head == nullptr) return nullptr;
  auto it = q.waiters.find(head->rank);
  for (size_t n = 0; n < kMostLookedAt && it != q.waiters.end(); ++n, ++it) {
    if (it->first.group == Rank::Group::kVotes) it = q.begin_of(Rank::Group::kInLine);
    if (it == q.waiters.end() || it->first.group > Rank::Group::kInLine) return nullptr;
    const Waiter* w = it->second;
    const bool asks =
        w->ticket == nullptr ? !has_left(ctx.s, *w) : !w->ticket->provisional && is_eligible(ctx, *w);
    if (asks) return w;
  }
  return nullptr;
}

// Whether the vote keeps the asker out. An upgrade is a holder already.
bool excludes(const Entry& e, const Waiter& vote, const Waiter& asker) {
  if (type_of(e) != EntryType::kLock) return true;
  const size_t holders = lock_body_of(e)->size() + (asker.upgrade ? 0 : 1);
  return holders > std::min(vote.capacity, asker.capacity).count;
}

// Asks for one vote, unless that was done just now. Returns when to do it again.
TimeMs ask_for(Context& ctx, const Waiter& vote) {
  const TimeMs again = ctx.now.mono + kInquiryPause;
  Ticket& t = *vote.ticket;
  if (has_left(ctx.s, vote)) return again;
  if (t.asked.count >= 0 && !is_due(t.asked + kInquiryPause, ctx.now.mono)) return t.asked + kInquiryPause;
  t.asked = ctx.now.mono;
  Reply push = open_push(ctx, ctx.s.conns.at(vote.conn), 5, "inquire", vote);
  push.integer(static_cast<int64_t>(t.vote.value));
  return again;
}

// Asks for the votes of younger tickets that keep the asker out.
TimeMs ask_younger(Context& ctx, WaitQueue* q, const Waiter& asker) {
  const Keyspace::Found f = ctx.keys(q->db).find(q->key());
  TimeMs next = kNever;
  for (auto it = q->begin_of(Rank::Group::kInLine); it != q->waiters.begin();) {
    const Waiter& vote = *(--it)->second;
    if (!vote.has_vote() || (!asker.upgrade && vote.rank.is_older(asker.rank))) break;
    if (excludes(*f, vote, asker)) next = std::min(next, ask_for(ctx, vote));
  }
  return next;
}

}  // namespace

bool has_left(const EngineState& s, const Waiter& w) { return !w.linked || s.conns.at(w.conn).leaving; }

bool is_eligible(const Context& ctx, const Waiter& w) { return ctx.now.mono <= eligible_until(ctx, w); }

void set_aside(Context& ctx, Waiter* w) {
  ctx.s.queues.set_group(w, Rank::Group::kSetAside);
  if (has_left(ctx.s, *w)) return;
  std::list<Waiter*>& aside = client_of(ctx, *w).set_aside;
  w->ticket->aside = aside.insert(aside.end(), w);
  w->ticket->set_aside = true;
}

void leave_client(Context& ctx, Waiter* w) {
  if (!std::exchange(w->ticket->set_aside, false)) return;
  client_of(ctx, *w).set_aside.erase(w->ticket->aside);
}

void return_wait(Context& ctx, Waiter* w) {
  if (w->has_vote()) return;
  leave_client(ctx, w);
  if (w->rank.group != Rank::Group::kInLine) ctx.s.queues.set_group(w, Rank::Group::kInLine);
  ctx.s.queues.mark_ready(w->queue);
}

void hear_client(Context& ctx, Conn& c, std::optional<TimeMs> seen) {
  if (c.tickets == nullptr) c.tickets = std::make_unique<TicketClient>(c.id);
  TicketClient& t = *c.tickets;
  t.heard = ctx.now.mono;
  if (seen) t.seen = std::max(t.seen, std::min(*seen, ctx.now.mono));
  t.to_return = t.set_aside.size();
  return_waits(ctx, &t);
}

void return_waits(Context& ctx, TicketClient* t) {
  t->to_return = std::min(t->to_return, t->set_aside.size());
  for (size_t n = std::min(t->to_return, kMostReturned); n > 0; --n, --t->to_return) {
    Waiter* w = t->set_aside.front();
    if (is_eligible(ctx, *w)) {
      return_wait(ctx, w);
    } else {
      t->set_aside.splice(t->set_aside.end(), t->set_aside, t->set_aside.begin());
    }
  }
  ctx.s.timers.set(t, t->to_return > 0 ? ctx.now.mono + DurationMs{1} : kNever);
}

TimeMs vote_since(const Context& ctx, TimeMs deadline, DurationMs ttl) {
  return deadline == kNever ? ctx.now.mono : std::min(ctx.now.mono, deadline - ttl);
}

void adopt_hold(Context& ctx, Waiter* w) {
  Keyspace::Found f = find_live(ctx, w->queue->db, w->queue->key());
  const auto own = f ? hold_of(*f, w->owner) : std::nullopt;
  if (!own || own->capacity != w->capacity) {
    if (w->has_vote()) drop_vote(ctx, w);
    return;
  }
  const Token token = own->holder != nullptr ? own->token : exclusive_token(ctx, {w->queue->db, f});
  if (w->ticket->vote != token) take_vote(ctx, w, token, own->deadline);
}

bool try_vote(Context& ctx, Waiter* w) {
  WaitQueue* q = w->queue;
  Keyspace::Found f = find_any(ctx, q->db, q->key());
  if (hold_of(*f, w->owner)) {
    adopt_hold(ctx, w);
    return w->has_vote();
  }
  LockRequest r = request_of(ctx, *w);
  r.queued = w->ticket->was_queued;
  if (!r.queued) r.waited = {};
  const auto token = try_admit(ctx, q->db, w->conn, r);
  if (!token) return false;
  take_vote(ctx, w, *token, ctx.now.mono + w->ttl);
  if (q->waiters.size() == 1) q->new_holders.clear();  // the owner has no other request here
  return true;
}

TimeMs ask_for_votes(Context& ctx, WaitQueue* q, const Waiter* head) {
  if (q->by_slot.empty()) return kNever;
  TimeMs next = kNever;
  const Waiter* asker = q->votes == 0 ? nullptr : find_asker(ctx, *q, head);
  if (asker != nullptr) {
    if (q->asker != asker->arrival || is_due(q->next_inquiry, ctx.now.mono)) {
      q->asker = asker->arrival;
      q->next_inquiry = ask_younger(ctx, q, *asker);
    }
    next = q->next_inquiry;
  }
  if (head == nullptr || head->ticket == nullptr) return next;
  if (type_of(*ctx.keys(q->db).find(q->key())) != EntryType::kLock) return next;
  // When the head is no longer eligible, those behind it may be admitted beside the holders.
  const auto behind = q->waiters.upper_bound(head->rank);
  const bool blocks = behind != q->waiters.end() && behind->first.group == Rank::Group::kInLine;
  return blocks ? std::min(next, eligible_until(ctx, *head) + DurationMs{1}) : next;
}

void detach_wait(Context& ctx, Waiter* w) {
  leave_connection(ctx, w);
  if (!w->has_vote()) ctx.s.queues.set_group(w, Rank::Group::kSetAside);
  w->ticket->leaves = ctx.now.mono + kPatience;
  ctx.s.timers.set(w, w->ticket->leaves);
  ctx.s.queues.mark_ready(w->queue);
}

void end_detached(Context& ctx, Waiter* w) {
  if (!w->has_vote()) cancel_wait(ctx, w, WaitEnd::kDisconnected);  // else it leaves when its vote ends
}

void end_vote(Context& ctx, KeyRef k, std::string_view owner, End why, TimeMs at) {
  Waiter* w = voter(ctx, k, owner);
  if (w == nullptr) return;
  const bool forced = why == End::kBroken || why == End::kDeleted || why == End::kOverwritten;
  if (forced) return cancel_wait(ctx, w, WaitEnd::kUnblocked);
  if (why == End::kExpired) w->ticket->stale_since = at;
  drop_vote(ctx, w);
}

void raise_vote(Context& ctx, KeyRef k, std::string_view owner, Token token) {
  if (Waiter* w = voter(ctx, k, owner)) w->ticket->vote = token;
}

}  // namespace holdfast
