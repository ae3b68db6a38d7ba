// Waiting: the queue of each key, and the grants to waiters when the key changes. The order is that of the
// tickets, which is FIFO among plain requests; a change wakes exactly the waiters that it admits.
#include "core/lock/waiting.h"

#include "core/base/config.h"
#include "core/base/timers.h"
#include "core/codec/reply.h"
#include "core/events/change_events.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/acquire.h"
#include "core/lock/deadlock.h"
#include "core/lock/keys.h"
#include "core/lock/record_events.h"
#include "core/lock/votes.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/empty_places.h"
#include "core/state/key_ref.h"
#include "core/state/output.h"
#include "core/state/stats.h"
#include "core/state/tickets.h"
#include "core/state/wait_queue.h"

#include <algorithm>
#include <cassert>

namespace holdfast {

namespace {

// So many waiters one serving removes from the line without a grant.
constexpr size_t kMostRemoved = 400;

std::unique_ptr<Waiter> make_waiter(const Context& ctx, const Conn& c, const LockRequest& r, bool upgrade,
                                    std::unique_ptr<Ticket> ticket) {
  auto w = std::make_unique<Waiter>();
  w->conn = c.id;
  w->owner = r.owner;
  if (r.note) w->note.emplace(*r.note);
  static_cast<LockTerms&>(*w) = static_cast<const LockTerms&>(r);
  w->upgrade = upgrade;
  w->ticket = std::move(ticket);
  if (w->ticket != nullptr) w->ticket->attempt = *read_attempt(w->owner);
  w->since = ctx.now.mono;
  w->bytes = bytes_of_name(r.key.bytes) + r.owner.size() + (r.note ? r.note->size() : 0);
  return w;
}

// The queue names the holder as of its last serving, so for a grant that is the holder before it.
void report_slow_wait(const Context& ctx, const Waiter& w, bool granted) {
  const Config& config = ctx.s.config;
  const DurationMs waited = ctx.now.mono - w.since;
  if (config.slow_wait_ms == 0 || waited.count <= config.slow_wait_ms || !config.slow_wait) return;
  const WaitQueue& q = *w.queue;
  const std::string& holder = q.holder.empty() ? q.first_holder : q.holder;
  config.slow_wait({.db = q.db,
                    .key = q.key_bytes,
                    .owner = w.owner,
                    .holder = holder,
                    .waited_ms = waited.count,
                    .granted = granted});
}

// Removes a waiter from its queue and from its connection.
std::unique_ptr<Waiter> dequeue(Context& ctx, Waiter* w, bool granted = false) {
  report_slow_wait(ctx, *w, granted);
  ctx.s.queues.mark_ready(w->queue);
  leave_connection(ctx, w);
  return ctx.s.queues.remove(w);
}

void answer_grant(Context& ctx, const Waiter& w, Token token) {
  Conn& c = ctx.s.conns.at(w.conn);
  if (w.async) {
    open_push(ctx, c, 5, "granted", w).integer(static_cast<int64_t>(token.value));
    return;
  }
  if (is_muted(c)) return;
  mark_dirty(ctx, c);
  Reply reply(c.out, c.protocol);
  reply.array(2);
  reply.bulk(w.owner);
  reply.integer(static_cast<int64_t>(token.value));
}

// Returns whether the waiter was granted and left the queue.
bool try_grant(Context& ctx, Waiter* w) {
  if (w->ticket != nullptr) return try_vote(ctx, w);
  if (has_left(ctx.s, *w)) return false;
  const auto token = try_admit(ctx, w->queue->db, w->conn, request_of(ctx, *w));
  if (!token) return false;
  record_wait_end(ctx, *w, WaitEnd::kGranted);
  answer_grant(ctx, *w, *token);
  dequeue(ctx, w, true);
  return true;
}

// Serves the other requests of an owner that has become a holder, as if they arrived now, in their order.
// So a client that repeated its request does not stay in the queue behind its own hold. A request for the
// same or a weaker mode is granted at once (the hold is converted). A request for a stronger mode becomes
// an upgrade.
void serve_owner(Context& ctx, WaitQueue* q, const std::string& owner) {
  for (Waiter* w : ctx.s.queues.of_owner_in(owner, q)) {
    const Keyspace::Found f = find_live(ctx, q->db, q->key());
    const auto held = f ? held_capacity(*f, owner) : std::nullopt;
    if (!held) return;
    if (w->ticket != nullptr) {
      adopt_hold(ctx, w);
    } else if (w->capacity >= *held) {
      try_grant(ctx, w);
    } else if (!w->upgrade) {
      ctx.s.queues.promote(w);
    }
  }
}

void serve_new_holders(Context& ctx, WaitQueue* q) {
  while (!q->new_holders.empty()) {
    const std::string owner = std::move(q->new_holders.back());
    q->new_holders.pop_back();
    serve_owner(ctx, q, owner);
  }
}

void retire_queue(Context& ctx, WaitQueue* q, Keyspace::Found& f) {
  f->has_queue = 0;
  if (type_of(*f) == EntryType::kNone) ctx.keys(q->db).erase(f);
  ctx.s.timers.cancel(q);
  ctx.s.queues.destroy(q);
}

// The holder with the smallest token. Of a string that is too long to be an owner its beginning; "" if the
// key has no holder, or one that WaitQueue::holder names.
std::string_view first_holder_of(const Entry& e) {
  if (type_of(e) == EntryType::kString && value_of(e).size() > kMostOwnerBytes)
    return value_of(e).substr(0, kMostOwnerBytes);
  const Holder* first = type_of(e) == EntryType::kLock ? lock_body_of(e)->first() : nullptr;
  return first == nullptr ? std::string_view() : std::string_view(first->owner);
}

// Records the holder of the key for deadlock.cc and the log, and sets the timer for the key's next change.
// A string that is longer than each owner holds the key too, but its owner waits nowhere, and copies of it
// would be expensive. `next`: the queue must be served then for another reason. `alone`: the queue
// has only the request of the holder, which has a vote. Then no request waits for the holder.
void record_key_state(Context& ctx, WaitQueue* q, const Entry& e, TimeMs next = kNever,
                      bool alone = false) {
  const bool owned = type_of(e) == EntryType::kString && value_of(e).size() <= kMostOwnerBytes && !alone;
  ctx.s.queues.record_holder(q, owned ? value_of(e) : "", type_of(e) == EntryType::kLock);
  if (ctx.s.config.slow_wait_ms > 0) q->first_holder = first_holder_of(e);
  next = std::min(next, deadline_of(e));
  ctx.s.timers.set(q, q->delayed(ctx.due) ? std::min(q->delay_until, next) : next);
}

// Returns the waiter that is served next; null if there is none. Removes at most `most` disconnected ones
// before it, and sets aside ticketed ones that are not eligible. The steps of disconnect.h remove the rest.
Waiter* first_to_serve(Context& ctx, WaitQueue* q, size_t& most) {
  while (Waiter* w = q->first()) {
    if (w->ticket == nullptr ? !has_left(ctx.s, *w) : is_eligible(ctx, *w)) return w;
    if (most == 0) return nullptr;
    --most;
    if (w->ticket != nullptr) {
      set_aside(ctx, w);
    } else {
      cancel_wait(ctx, w, WaitEnd::kDisconnected);
    }
  }
  return nullptr;
}

// Grants the waiters that the holders admit. Returns when the queue must be served again, if nothing
// changes before.
TimeMs serve_line(Context& ctx, WaitQueue* q) {
  const Keyspace::Found now = find_any(ctx, q->db, q->key());
  const bool held = type_of(*now) == EntryType::kString;  // then no waiter can be granted
  const bool looks = !held || q->votes > 0;
  size_t most = looks ? kMostRemoved : 0;
  Waiter* w = first_to_serve(ctx, q, most);
  while (w != nullptr && !q->delayed(ctx.due) && try_grant(ctx, w)) {
    serve_new_holders(ctx, q);
    ++most;
    w = first_to_serve(ctx, q, most);
  }
  const TimeMs next = ask_for_votes(ctx, q, w);
  const bool more = looks && w == nullptr && q->first() != nullptr && q->first()->ticket != nullptr;
  return more ? ctx.now.mono + DurationMs{1} : next;
}

// Serves the requests that the value of the key has elements for.
void serve_pops(Context& ctx, WaitQueue* q) {
  for (const EntryType type : {EntryType::kList, EntryType::kZset}) {
    std::list<PopWaiter*>& pops = q->pops(type);
    const auto has_elements = [&] {
      const Keyspace::Found f = find_live(ctx, q->db, q->key());
      return f && type_of(*f) == type;
    };
    for (auto it = pops.begin(); it != pops.end() && has_elements();) {
      PopWaiter* w = *it++;
      if (!ctx.s.conns.at(w->conn).leaving) w->serve(ctx, w, q->key());
    }
  }
}

// Returns whether nothing needs the queue: then it is destroyed.
bool retire_if_unused(Context& ctx, WaitQueue* q, Keyspace::Found& f) {
  if (!q->empty() || q->delayed(ctx.due) || has_listener(ctx.s, q->db, f)) return false;
  retire_queue(ctx, q, f);
  return true;
}

void serve(Context& ctx, WaitQueue* q) {
  if (q->has_pops()) [[unlikely]]
    serve_pops(ctx, q);            // this may remove the value, and so admit a lock
  find_any(ctx, q->db, q->key());  // expires holds that are due, which may free the key
  serve_new_holders(ctx, q);
  const TimeMs next = serve_line(ctx, q);
  Keyspace::Found f = find_any(ctx, q->db, q->key());
  WaitQueues::end_serving(q);
  const bool alone = q->votes > 0 && q->waiters.size() == 1;
  if (!retire_if_unused(ctx, q, f)) record_key_state(ctx, q, *f, next, alone);
}

// The server grants nothing now. Queues that have become empty meanwhile must not pile up.
void retire_some(Context& ctx) {
  constexpr size_t kMostLookedAt = 16;  // more than one call of the engine makes ready, on average
  WaitQueues& queues = ctx.s.queues;
  for (size_t n = std::min(queues.ready(), kMostLookedAt); n > 0; --n) {
    WaitQueue* q = queues.take_ready();
    Keyspace::Found f = find_any(ctx, q->db, q->key());  // this may expire holds, which marks the queue
    WaitQueues::end_serving(q);
    if (retire_if_unused(ctx, q, f)) continue;
    record_key_state(ctx, q, *f);
    queues.mark_ready(q);
  }
}

// Another request of the owner that waits behind a place; null if there is none among the first ones.
Waiter* wait_behind(const Context& ctx, const Waiter& place) {
  constexpr size_t kMostLookedAt = 100;  // an owner may have very many waits
  const OwnerWaits& all = ctx.s.queues.of_owner(place.owner);
  auto it = all.lower_bound(ByQueue::Place(place.queue, 0));
  for (size_t n = 0; n < kMostLookedAt && it != all.end() && (*it)->queue == place.queue; ++n, ++it) {
    const Waiter& w = **it;
    if (w.ticket == nullptr && w.rank > place.rank && !has_left(ctx.s, w)) return *it;
  }
  return nullptr;
}

// The owner of a wait whose connection ended gets its place back if it comes again soon. If another request
// of the owner waits behind it, as it does if the server sees the end of the old connection late, that
// request gets the place now.
void keep_place(Context& ctx, const Waiter& left) {
  if (left.upgrade || !left.returns) return;
  EmptyPlaces& places = ctx.s.places;
  const EmptyPlaces::Whose whose{left.queue->db, left.queue->key_bytes, left.owner};
  const uint64_t kept = places.find(whose, ctx.now.mono);
  if (kept != 0 && kept < left.rank.time) return;
  if (Waiter* w = wait_behind(ctx, left)) return ctx.s.queues.move_to(w, left.rank.time);
  const size_t most = ctx.s.config.limits.waiters;
  places.keep(whose, left.rank.time, ctx.now.mono + EmptyPlaces::kKept,
              most - std::min<size_t>(most, ctx.s.queues.places()));
  ctx.s.timers.set(&places, places.next_end());
}

// The ticket of a plain request that arrives now: its time, and behind all tickets that the key has seen.
// So a client whose clock is ahead does not always come behind. While places are kept, it is larger than
// theirs, also if the wall clock was set back.
uint64_t ticket_of_arrival(const Context& ctx, const Key& key) {
  const auto clock_us = static_cast<uint64_t>(std::max<int64_t>(ctx.now.wall_us, 0));
  const uint64_t time = std::max(clock_us, ctx.s.tickets.floors.of(key) + 1);
  return ctx.s.places.size() == 0 ? time : std::max(time, ctx.s.queues.last_time() + 1);
}

// The place of a new request.
Rank rank_of(uint64_t place, const Ticket* ticket) {
  if (ticket != nullptr) return {Rank::Group::kInLine, ticket->time, ticket->attempt.slot, 0};
  return place == 0 ? Rank::last() : Rank{Rank::Group::kInLine, place, {}, 0};
}

Acquisition too_many(Context& ctx, Admission outcome) {
  ++ctx.s.stats.locks.refusals[Refusal::kWaiters];
  return {outcome, {}};
}

}  // namespace

LockRequest request_of(const Context& ctx, const Waiter& w) {
  LockRequest r;
  static_cast<LockTerms&>(r) = static_cast<const LockTerms&>(w);
  r.key = w.queue->key();
  r.owner = w.owner;
  r.queued = true;
  r.waited = ctx.now.mono - w.since;
  if (w.note) r.note = *w.note;
  return r;
}

Reply open_push(Context& ctx, Conn& c, size_t elements, std::string_view what, const Waiter& w) {
  Reply push = push_to(ctx, c);
  push.push(elements);
  push.bulk("lock");
  push.bulk(what);
  push.bulk(w.queue->key_bytes);
  push.bulk(w.owner);
  return push;
}

bool has_line(Context& ctx, WaitQueue* q) {
  if (q->by_slot.empty()) return !q->waiters.empty();
  size_t most = kMostRemoved;
  return first_to_serve(ctx, q, most) != nullptr || q->first() != nullptr;
}

bool is_muted(Conn& c) {
  const bool muted = c.reply_mode == ReplyMode::kOff || c.reply_mode == ReplyMode::kSkip;
  if (c.reply_mode == ReplyMode::kSkip) c.reply_mode = ReplyMode::kOn;
  return muted;
}

void join_connection(Context& ctx, Conn& c, WaitingRequest* w, DurationMs timeout, bool blocks) {
  w->of_conn = c.waiters.insert(c.waiters.end(), w);
  w->linked = true;
  c.wait_bytes += w->bytes;
  if (blocks) c.blocked_on = w;
  if (timeout.count > 0) ctx.s.timers.set(w, ctx.now.mono + timeout);
}

void leave_connection(Context& ctx, WaitingRequest* w) {
  ctx.s.timers.cancel(w);
  if (!w->linked) return;
  if (!w->pops && static_cast<Waiter*>(w)->ticket != nullptr) leave_client(ctx, static_cast<Waiter*>(w));
  w->linked = false;
  Conn& c = ctx.s.conns.at(w->conn);
  c.waiters.erase(w->of_conn);
  c.wait_bytes -= w->bytes;
  if (c.blocked_on != w) return;
  c.blocked_on = nullptr;
  ctx.fx.wakes.push_back(c.id);
}

WaitQueue* queue_of(Context& ctx, KeyRef k, const Key& key) {
  k->has_queue = 1;
  return ctx.s.queues.find_or_make(k.db, key);
}

Acquisition wait_for(Context& ctx, Conn& c, const LockRequest& r, Keyspace::Found& f, bool upgrade,
                     std::unique_ptr<Ticket> ticket) {
  const Limits& limits = ctx.s.config.limits;
  if (ctx.s.queues.places() >= limits.waiters) return too_many(ctx, Admission::kTooMany);
  WaitQueue* q = queue_of(ctx, {c.db, f}, r.key);
  // The queue is served at the end of the engine call in any case. That sets its timer, or destroys the
  // queue if it has no waiter.
  ctx.s.queues.mark_ready(q);
  if (q->places() >= limits.waiters_per_key) return too_many(ctx, Admission::kTooManyOnKey);
  record_key_state(ctx, q, *f);
  const bool plain = ticket == nullptr;
  const uint64_t place =
      upgrade || !plain ? 0 : ctx.s.places.find({c.db, r.key.bytes, r.owner}, ctx.now.mono);
  const bool free = type_of(*f) == EntryType::kNone && q->empty() && !q->delayed(ctx.due);
  const bool has_vote = !plain && (free || hold_of(*f, r.owner));  // at once
  if (!has_vote && would_deadlock(ctx, q, {r.owner, r.capacity, upgrade, rank_of(place, ticket.get())})) {
    ++ctx.s.stats.locks.refusals[Refusal::kDeadlock];
    record_deadlock(ctx, c, r);
    return {Admission::kDeadlock, {}};
  }
  Waiter* w = ctx.s.queues.enqueue(q, make_waiter(ctx, c, r, upgrade, std::move(ticket)),
                                   ticket_of_arrival(ctx, r.key), place);
  if (place != 0) ctx.s.places.forget({c.db, r.key.bytes, r.owner});
  join_connection(ctx, c, w, r.wait.value_or(DurationMs{0}), plain && !r.async);
  if (plain) lock_event(ctx, r.key.bytes, "queued", r.owner);
  return {Admission::kWaiting, {}};
}

void serve_queues(Context& ctx) {
  if (!ctx.s.availability.grants(ctx.now.mono)) [[unlikely]]
    return retire_some(ctx);  // the waiters keep waiting
  while (WaitQueue* q = ctx.s.queues.take_ready()) serve(ctx, q);
}

void cancel_wait(Context& ctx, WaitingRequest* waiting, WaitEnd why) {
  if (waiting->pops) {
    remove_pop_wait(ctx, static_cast<PopWaiter*>(waiting));
    return;
  }
  auto* w = static_cast<Waiter*>(waiting);
  if (w->ticket != nullptr && w->linked && (why == WaitEnd::kDisconnected || why == WaitEnd::kReset))
    return detach_wait(ctx, w);
  if (w->ticket == nullptr || w->ticket->was_queued) record_wait_end(ctx, *w, why);
  const std::unique_ptr<Waiter> left = dequeue(ctx, w, why == WaitEnd::kGranted);
  if (why == WaitEnd::kDisconnected) keep_place(ctx, *left);
}

std::unique_ptr<PopWaiter> remove_pop_wait(Context& ctx, PopWaiter* w) {
  leave_connection(ctx, w);
  for (const PopWaiter::Place& place : w->places) ctx.s.queues.mark_ready(place.queue);
  return ctx.s.queues.remove(w);
}

void cancel_waits(Context& ctx, Conn& c, WaitEnd why, size_t most) {
  for (; most > 0 && !c.waiters.empty(); --most) cancel_wait(ctx, c.waiters.front(), why);
}

void end_wait_by_timeout(Context& ctx, WaitingRequest* w, WaitEnd why) {
  auto* const lock = w->pops ? nullptr : static_cast<Waiter*>(w);
  if (lock != nullptr && lock->ticket != nullptr) return end_detached(ctx, lock);
  Conn& c = ctx.s.conns.at(w->conn);
  if (lock != nullptr && lock->async) {
    open_push(ctx, c, 4, "timeout", *lock);
  } else if (!is_muted(c)) {
    mark_dirty(ctx, c);
    Reply(c.out, c.protocol).null_array();
  }
  cancel_wait(ctx, w, why);
}

void end_empty_places(Context& ctx) {
  ctx.s.places.end_some(ctx.due);
  ctx.s.timers.set(&ctx.s.places, std::max(ctx.s.places.next_end(), ctx.now.mono + DurationMs{1}));
}

void end_waits_of_owner(Context& ctx, DbIndex db, const Key& key, std::string_view owner) {
  const WaitQueue* q = ctx.s.queues.find(db, key);
  if (q == nullptr) return;
  for (Waiter* w : ctx.s.queues.of_owner_in(owner, q)) {
    if (w->ticket != nullptr) {
      cancel_wait(ctx, w, WaitEnd::kUnblocked);
    } else {
      end_wait_by_timeout(ctx, w, WaitEnd::kUnblocked);
    }
  }
}

}  // namespace holdfast
