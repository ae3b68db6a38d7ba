// Counters and history of the less frequent events.
#include "core/lock/record_events.h"

#include "core/state/conn.h"
#include "core/state/contended_keys.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

LockEvent event_of(WaitEnd why) {
  switch (why) {
    case WaitEnd::kTimeout:
      return LockEvent::kTimeout;
    case WaitEnd::kDisconnected:
      return LockEvent::kDisconnected;
    case WaitEnd::kGranted:
      return LockEvent::kGranted;
    case WaitEnd::kUnblocked:
    case WaitEnd::kReset:
      break;
  }
  return LockEvent::kUnblocked;
}

// Without the time at which a late timer was due: a wait ends when the server notices it.
void record(Context& ctx, const LockEventFacts& facts, std::string_view key, std::string_view owner,
            std::string_view note = {}) {
  if (ctx.s.history.on()) ctx.s.history.add(key, owner, note) = facts;
}

}  // namespace

void record_set_hold(Context& ctx, KeyRef k) {
  if (!ctx.s.history.on()) return;
  LockEventFacts& facts = ctx.s.history.add_adjacent(key_of(*k), value_of(*k));
  facts = {ctx.now.wall_us, token_of(*k), {}, {}, ctx.actor, LockEvent::kGranted, k.db};
}

void record_holder_end(Context& ctx, KeyRef k, const Holder& h, End why, TimeMs at) {
  ctx.s.stats.locks.record_end(mode_of(h.capacity), why, at - h.held_since);
  if (!ctx.s.history.on()) return;
  LockEventFacts facts = facts_of_end(ctx, k.db, h.token, why, h.held_since, at);
  if (!facts.conn) facts.conn = h.client;
  ctx.s.history.add(key_of(*k), h.owner, h.attachment.note) = facts;
}

void record_wait_end(Context& ctx, const Waiter& w, WaitEnd why) {
  const DurationMs waited = ctx.now.mono - w.since;
  ++ctx.s.stats.locks.wait_ends[why];
  ctx.s.contended.record(w.queue->db, w.queue->key_bytes, waited, why == WaitEnd::kGranted);
  if (why == WaitEnd::kGranted) return;  // record_grant() has counted it, unless it was a repeat by a holder
  record(ctx, {ctx.now.wall_us, {}, waited, {}, w.conn, event_of(why), w.queue->db}, w.queue->key_bytes,
         w.owner, w.note.value_or(""));
}

void record_deadlock(Context& ctx, const Conn& c, const LockRequest& r) {
  record(ctx, {ctx.now.wall_us, {}, {}, {}, c.id, LockEvent::kDeadlock, c.db}, r.key.bytes, r.owner,
         r.note.value_or(""));
}

void record_revoke(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   std::string_view note, Token token, TimeMs since) {
  record(ctx, {ctx.now.wall_us, token, {}, ctx.now.mono - since, ctx.actor, LockEvent::kRevoke, db}, key,
         owner, note);
}

}  // namespace holdfast
