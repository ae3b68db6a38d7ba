// Waiting: who stands in a key's queue, and who is let in when the key changes. First come, first served; a
// change wakes exactly those that it admits.
#include "core/lock/waiting.h"

#include "core/events/change_events.h"
#include "core/lock/acquire.h"
#include "core/lock/deadlock.h"
#include "core/lock/keys.h"

#include <algorithm>
#include <cassert>

namespace holdfast {

namespace {

LockRequest request_of(const Waiter& w) {
  LockRequest r;
  r.key = w.queue->key();
  r.owner = w.owner;
  r.ttl = w.ttl;
  r.capacity = w.capacity;
  r.delay = w.delay;
  r.hint = w.hint;
  r.session = w.session;
  r.async = w.async;
  return r;
}

std::unique_ptr<Waiter> make_waiter(const Turn& t, const Conn& c, const LockRequest& r, bool upgrade) {
  auto w = std::make_unique<Waiter>();
  w->conn = c.id;
  w->owner = r.owner;
  w->capacity = r.capacity;
  w->ttl = r.ttl;
  w->delay = r.delay;
  w->hint = r.hint;
  w->session = r.session;
  w->async = r.async;
  w->upgrade = upgrade;
  w->since = t.now.mono;
  return w;
}

// Takes a waiter out of its queue and off its connection. A blocked connection may go on.
std::unique_ptr<Waiter> dequeue(Turn& t, Waiter* w) {
  t.s.timers.cancel(w);
  t.s.queues.mark_ready(w->queue);
  Conn& c = t.s.conns.at(w->conn);
  c.waiters.erase(w->of_conn);
  if (c.blocked_on == w) {
    c.blocked_on = nullptr;
    t.fx.wakes.push_back(c.id);
  }
  return t.s.queues.remove(w);
}

Reply open_push(Turn& t, Conn& c, size_t elements, std::string_view what, const Waiter& w) {
  Reply push = push_to(t, c);
  push.push(elements);
  push.bulk("lock");
  push.bulk(what);
  push.bulk(w.queue->key_bytes);
  push.bulk(w.owner);
  return push;
}

// CLIENT REPLY, for an answer that comes later than its request.
bool is_muted(Conn& c) {
  const bool muted = c.reply_mode == ReplyMode::kOff || c.reply_mode == ReplyMode::kSkip;
  if (c.reply_mode == ReplyMode::kSkip) c.reply_mode = ReplyMode::kOn;
  return muted;
}

void answer_grant(Turn& t, const Waiter& w, Token token) {
  Conn& c = t.s.conns.at(w.conn);
  if (w.async) {
    open_push(t, c, 5, "granted", w).integer(static_cast<int64_t>(token.value));
    return;
  }
  if (is_muted(c)) return;
  mark_dirty(t, c);
  Reply reply(c.out, c.protocol);
  reply.array(2);
  reply.bulk(w.owner);
  reply.integer(static_cast<int64_t>(token.value));
}

// Whether it left the queue.
bool let_in(Turn& t, Waiter* w) {
  if (t.s.conns.at(w->conn).leaving) return false;
  const auto token = try_admit(t, w->queue->db, w->conn, request_of(*w));
  if (!token) return false;
  ++t.s.stats.queued_grants;
  answer_grant(t, *w, *token);
  dequeue(t, w);
  return true;
}

// With which capacity the owner holds the key; nullopt: it does not.
std::optional<Capacity> held_by(Turn& t, const WaitQueue* q, const std::string& owner) {
  const Keyspace::Found f = find_live(t, q->db, q->key());
  if (!f) return std::nullopt;
  if (type_of(*f) == EntryType::kLock) {
    const Holder* h = lock_body_of(*f)->find(owner);
    return h == nullptr ? std::nullopt : std::optional(h->capacity);
  }
  return is_hold(*f) && value_of(*f) == owner ? std::optional(kExclusive) : std::nullopt;
}

// An owner has become a holder: its other requests here are answered as if they came now, in the order in
// which they came, so that a client that asked again is not left behind. One for the same or a weaker mode
// is granted at once (the hold is converted); one for a stronger mode is an upgrade from now on.
void serve_owner(Turn& t, WaitQueue* q, const std::string& owner) {
  for (Waiter* w : t.s.queues.of_owner_in(owner, q)) {
    const auto held = held_by(t, q, owner);
    if (!held) return;
    if (w->capacity >= *held) {
      let_in(t, w);
    } else if (!w->upgrade) {
      t.s.queues.promote(w);
    }
  }
}

void serve_new_holders(Turn& t, WaitQueue* q) {
  while (!q->new_holders.empty()) {
    const std::string owner = std::move(q->new_holders.back());
    q->new_holders.pop_back();
    serve_owner(t, q, owner);
  }
}

void retire_queue(Turn& t, WaitQueue* q, Keyspace::Found& f) {
  f->has_queue = 0;
  if (type_of(*f) == EntryType::kNone) t.keys(q->db).erase(f);
  t.s.timers.cancel(q);
  t.s.queues.destroy(q);
}

// The holder and the next change of the key, for deadlock.cc and the timers.
void note_key_state(Turn& t, WaitQueue* q, const Entry& e) {
  const bool exclusive = type_of(e) == EntryType::kString;
  t.s.queues.note_holder(q, exclusive ? value_of(e) : "", type_of(e) == EntryType::kLock);
  t.s.timers.set(q, q->delayed(t.due) ? std::min(q->delay_until, deadline_of(e)) : deadline_of(e));
}

// Those at the head whose connection has gone, at most so many: the steps of disconnect.h take out the
// rest.
void pass_leavers(Turn& t, WaitQueue* q, size_t most) {
  for (; most > 0 && !q->waiters.empty() && t.s.conns.at(q->waiters.front()->conn).leaving; --most) {
    dequeue(t, q->waiters.front());
  }
}

void serve(Turn& t, WaitQueue* q) {
  constexpr size_t kMostLeavers = 400;
  const Keyspace::Found now = find_any(t, q->db, q->key());  // ends what is due, which may free the key
  const bool held = type_of(*now) == EntryType::kString;     // then nobody could come in
  serve_new_holders(t, q);
  if (!held) pass_leavers(t, q, kMostLeavers);
  while (!q->waiters.empty() && !q->delayed(t.due) && let_in(t, q->waiters.front())) {
    serve_new_holders(t, q);
    pass_leavers(t, q, 1);
  }
  Keyspace::Found f = find_any(t, q->db, q->key());
  WaitQueues::end_serving(q);
  if (q->waiters.empty() && !q->delayed(t.due) && !has_listener(t.s, q->db, f)) {
    retire_queue(t, q, f);
    return;
  }
  note_key_state(t, q, *f);
}

}  // namespace

WaitQueue* queue_of(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f) {
  f->has_queue = 1;
  return t.s.queues.find_or_make(db, key);
}

Acquisition wait_for(Turn& t, Conn& c, const LockRequest& r, Keyspace::Found& f, bool upgrade) {
  const Limits& limits = t.s.config.limits;
  if (t.s.queues.waiting() >= limits.waiters) return {Admission::kTooMany, {}};
  WaitQueue* q = queue_of(t, c.db, r.key, f);
  // Served at the end of the turn in any case: this sets its timer, or removes it again where nobody joins.
  t.s.queues.mark_ready(q);
  if (q->waiters.size() >= limits.waiters_per_key) return {Admission::kTooManyOnKey, {}};
  note_key_state(t, q, *f);
  if (would_deadlock(t, q, r.owner, r.capacity, upgrade)) {
    ++t.s.stats.deadlocks;
    return {Admission::kDeadlock, {}};
  }
  Waiter* w = t.s.queues.enqueue(q, make_waiter(t, c, r, upgrade));
  w->of_conn = c.waiters.insert(c.waiters.end(), w);
  if (!r.async) c.blocked_on = w;
  lock_event(t, r.key.bytes, "queued", r.owner);
  if (r.wait->count > 0) t.s.timers.set(w, t.now.mono + *r.wait);
  return {Admission::kWaiting, {}};
}

void serve_queues(Turn& t) {
  if (!t.s.service.grants(t.now.mono)) [[unlikely]]
    return;  // those in the queues go on waiting
  while (WaitQueue* q = t.s.queues.take_ready()) serve(t, q);
}

void cancel_wait(Turn& t, Waiter* w) { dequeue(t, w); }

void cancel_waits(Turn& t, Conn& c, size_t most) {
  for (; most > 0 && !c.waiters.empty(); --most) cancel_wait(t, c.waiters.front());
}

void end_wait_by_timeout(Turn& t, Waiter* w) {
  ++t.s.stats.timeouts;
  Conn& c = t.s.conns.at(w->conn);
  if (w->async) {
    open_push(t, c, 4, "timeout", *w);
  } else if (!is_muted(c)) {
    mark_dirty(t, c);
    Reply(c.out, c.protocol).null_array();
  }
  dequeue(t, w);
}

}  // namespace holdfast
