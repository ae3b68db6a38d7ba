// Waiting: the queue of each key, and the grants to waiters when the key changes. The order is FIFO; a
// change wakes exactly the waiters that it admits.
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
#include "core/lock/pop_waiting.h"
#include "core/lock/record_events.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/empty_places.h"
#include "core/state/key_ref.h"
#include "core/state/output.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"
#include "core/state/wait_queue.h"

#include <algorithm>
#include <cassert>

namespace holdfast {

namespace {

// So many waiters of a queue know that their turn is near. Two: the second one has the time of the first
// one's wait and hold to prepare, by waiting on other servers, too.
constexpr size_t kToldNext = 2;

// The most that --max-owner-size can be.
constexpr size_t kMostOwnerBytes = 65535;

LockRequest request_of(const Context& ctx, const Waiter& w) {
  LockRequest r{static_cast<const LockTerms&>(w),
                w.queue->key(),
                w.owner,
                {},
                true,
                ctx.now.mono - w.since,
                {},
                false};
  if (w.note) r.note = *w.note;
  return r;
}

std::unique_ptr<Waiter> make_waiter(const Context& ctx, const Conn& c, const LockRequest& r, bool upgrade) {
  auto w = std::make_unique<Waiter>();
  w->conn = c.id;
  w->owner = r.owner;
  if (r.note) w->note.emplace(*r.note);
  static_cast<LockTerms&>(*w) = static_cast<const LockTerms&>(r);
  w->upgrade = upgrade;
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
  config.slow_wait({q.db, q.key_bytes, w.owner, holder, waited.count, granted});
}

// Removes a waiter from its queue and from its connection.
std::unique_ptr<Waiter> dequeue(Context& ctx, Waiter* w, bool granted = false) {
  report_slow_wait(ctx, *w, granted);
  ctx.s.queues.mark_ready(w->queue);
  leave_connection(ctx, w);
  return ctx.s.queues.remove(w);
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
  if (ctx.s.conns.at(w->conn).leaving) return false;
  const auto token = try_admit(ctx, w->queue->db, w->conn, request_of(ctx, *w));
  if (!token) return false;
  record_wait_end(ctx, *w, WaitEnd::kGranted);
  answer_grant(ctx, *w, *token);
  dequeue(ctx, w, true);
  return true;
}

// Returns the capacity with which the owner holds the key, or nullopt if it does not hold it.
std::optional<Capacity> held_by(Context& ctx, const WaitQueue* q, const std::string& owner) {
  const Keyspace::Found f = find_live(ctx, q->db, q->key());
  if (!f) return std::nullopt;
  if (type_of(*f) == EntryType::kLock) {
    const Holder* h = lock_body_of(*f)->find(owner);
    return h == nullptr ? std::nullopt : std::optional(h->capacity);
  }
  return is_hold(*f) && value_of(*f) == owner ? std::optional(kExclusive) : std::nullopt;
}

// Serves the other requests of an owner that has become a holder, as if they arrived now, in their order.
// So a client that repeated its request does not stay in the queue behind its own hold. A request for the
// same or a weaker mode is granted at once (the hold is converted). A request for a stronger mode becomes
// an upgrade.
void serve_owner(Context& ctx, WaitQueue* q, const std::string& owner) {
  for (Waiter* w : ctx.s.queues.of_owner_in(owner, q)) {
    const auto held = held_by(ctx, q, owner);
    if (!held) return;
    if (w->capacity >= *held) {
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
// would be expensive.
void record_key_state(Context& ctx, WaitQueue* q, const Entry& e) {
  const bool owned = type_of(e) == EntryType::kString && value_of(e).size() <= kMostOwnerBytes;
  ctx.s.queues.record_holder(q, owned ? value_of(e) : "", type_of(e) == EntryType::kLock);
  if (ctx.s.config.slow_wait_ms > 0) q->first_holder = first_holder_of(e);
  ctx.s.timers.set(q, q->delayed(ctx.due) ? std::min(q->delay_until, deadline_of(e)) : deadline_of(e));
}

// Removes at most `most` disconnected waiters from the head. The steps of disconnect.h remove the rest.
void remove_disconnected(Context& ctx, WaitQueue* q, size_t most) {
  for (; most > 0 && !q->waiters.empty() && ctx.s.conns.at(q->first()->conn).leaving; --most) {
    cancel_wait(ctx, q->first(), WaitEnd::kDisconnected);
  }
}

// Tells the first two waiters that their turn is near, with the token that each gets if no other key raises
// the counter before.
void tell_next(Context& ctx, const WaitQueue* q) {
  uint64_t token = ctx.s.tokens.last(q->key());
  size_t places = kToldNext;
  for (const auto& [rank, w] : q->waiters) {
    if (places-- == 0) return;
    token = std::max(token + 1, w->hint);
    Conn& c = ctx.s.conns.at(w->conn);
    if (!w->next || w->told_next || c.leaving) continue;
    w->told_next = true;
    open_push(ctx, c, 5, "next", *w).integer(static_cast<int64_t>(token));
  }
}

void serve(Context& ctx, WaitQueue* q) {
  constexpr size_t kMostRemoved = 400;
  if (q->has_pops()) [[unlikely]]
    serve_pops(ctx, q);  // this may remove the value, and so admit a lock
  // Expires holds that are due, which may free the key.
  const Keyspace::Found now = find_any(ctx, q->db, q->key());
  const bool held = type_of(*now) == EntryType::kString;  // then no waiter can be granted
  serve_new_holders(ctx, q);
  if (!held) remove_disconnected(ctx, q, kMostRemoved);
  while (!q->waiters.empty() && !q->delayed(ctx.due) && try_grant(ctx, q->first())) {
    serve_new_holders(ctx, q);
    remove_disconnected(ctx, q, 1);
  }
  Keyspace::Found f = find_any(ctx, q->db, q->key());
  WaitQueues::end_serving(q);
  if (q->empty() && !q->delayed(ctx.due) && !has_listener(ctx.s, q->db, f)) {
    retire_queue(ctx, q, f);
    return;
  }
  record_key_state(ctx, q, *f);
  tell_next(ctx, q);
}

// Another request of the owner that waits behind a place; null if there is none among the first ones.
Waiter* wait_behind(const Context& ctx, const Waiter& place) {
  constexpr size_t kMostLookedAt = 100;  // an owner may have very many waits
  const OwnerWaits& all = ctx.s.queues.of_owner(place.owner);
  auto it = all.lower_bound(ByQueue::Place(place.queue, 0));
  for (size_t n = 0; n < kMostLookedAt && it != all.end() && (*it)->queue == place.queue; ++n, ++it) {
    if ((*it)->rank > place.rank && !ctx.s.conns.at((*it)->conn).leaving) return *it;
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
  if (kept != 0 && kept < left.rank) return;
  if (Waiter* w = wait_behind(ctx, left)) return ctx.s.queues.move_to(w, left.rank);
  const size_t most = ctx.s.config.limits.waiters;
  places.keep(whose, left.rank, ctx.now.mono + EmptyPlaces::kKept,
              most - std::min<size_t>(most, ctx.s.queues.places()));
  ctx.s.timers.set(&places, places.next_end());
}

Acquisition too_many(Context& ctx, Admission outcome) {
  ++ctx.s.stats.locks.refusals[Refusal::kWaiters];
  return {outcome, {}};
}

}  // namespace

bool is_muted(Conn& c) {
  const bool muted = c.reply_mode == ReplyMode::kOff || c.reply_mode == ReplyMode::kSkip;
  if (c.reply_mode == ReplyMode::kSkip) c.reply_mode = ReplyMode::kOn;
  return muted;
}

void join_connection(Context& ctx, Conn& c, WaitingRequest* w, DurationMs timeout, bool blocks) {
  w->of_conn = c.waiters.insert(c.waiters.end(), w);
  c.wait_bytes += w->bytes;
  if (blocks) c.blocked_on = w;
  if (timeout.count > 0) ctx.s.timers.set(w, ctx.now.mono + timeout);
}

void leave_connection(Context& ctx, WaitingRequest* w) {
  ctx.s.timers.cancel(w);
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

Acquisition wait_for(Context& ctx, Conn& c, const LockRequest& r, Keyspace::Found& f, bool upgrade) {
  const Limits& limits = ctx.s.config.limits;
  if (ctx.s.queues.places() >= limits.waiters) return too_many(ctx, Admission::kTooMany);
  WaitQueue* q = queue_of(ctx, {c.db, f}, r.key);
  // The queue is served at the end of the engine call in any case. That sets its timer, or destroys the
  // queue if it has no waiter.
  ctx.s.queues.mark_ready(q);
  if (q->places() >= limits.waiters_per_key) return too_many(ctx, Admission::kTooManyOnKey);
  record_key_state(ctx, q, *f);
  const uint64_t place = upgrade ? 0 : ctx.s.places.find({c.db, r.key.bytes, r.owner}, ctx.now.mono);
  if (would_deadlock(ctx, q, {r.owner, r.capacity, upgrade, place})) {
    ++ctx.s.stats.locks.refusals[Refusal::kDeadlock];
    record_deadlock(ctx, c, r);
    return {Admission::kDeadlock, {}};
  }
  Waiter* w = ctx.s.queues.enqueue(q, make_waiter(ctx, c, r, upgrade), place);
  if (place != 0) ctx.s.places.forget({c.db, r.key.bytes, r.owner});
  join_connection(ctx, c, w, *r.wait, !r.async);
  lock_event(ctx, r.key.bytes, "queued", r.owner);
  return {Admission::kWaiting, {}};
}

void serve_queues(Context& ctx) {
  if (!ctx.s.availability.grants(ctx.now.mono)) [[unlikely]]
    return;  // the waiters keep waiting
  while (WaitQueue* q = ctx.s.queues.take_ready()) serve(ctx, q);
}

void cancel_wait(Context& ctx, WaitingRequest* waiting, WaitEnd why) {
  if (waiting->pops) return end_pop_wait(ctx, static_cast<PopWaiter*>(waiting));
  auto* w = static_cast<Waiter*>(waiting);
  record_wait_end(ctx, *w, why);
  const std::unique_ptr<Waiter> left = dequeue(ctx, w);
  if (why == WaitEnd::kDisconnected) keep_place(ctx, *left);
}

void cancel_waits(Context& ctx, Conn& c, WaitEnd why, size_t most) {
  for (; most > 0 && !c.waiters.empty(); --most) cancel_wait(ctx, c.waiters.front(), why);
}

void end_wait_by_timeout(Context& ctx, WaitingRequest* w, WaitEnd why) {
  Conn& c = ctx.s.conns.at(w->conn);
  const auto* lock = w->pops ? nullptr : static_cast<Waiter*>(w);
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
  for (Waiter* w : ctx.s.queues.of_owner_in(owner, q)) end_wait_by_timeout(ctx, w, WaitEnd::kUnblocked);
}

}  // namespace holdfast
