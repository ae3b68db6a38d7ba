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
  ctx.s.history.add_hold(*k, ctx.now.wall_us, {}, ctx.actor.serial, LockEvent::kGranted, k.db);
}

void record_attached_end(Context& ctx, KeyRef k, End why, TimeMs at) {
  const Attachment* a = attachment_of(ctx.s.attachments, k.db, k.f);
  // If a timer or the end of the session ends the hold, no request runs.
  const uint64_t conn = ctx.actor ? ctx.actor.serial : a->conn.serial;
  record(ctx, {wall_us_at(ctx, at), token_of(*k), at - held_since(*k), conn, event_of(why), k.db},
         key_of(*k), value_of(*k), a->note);
}

void record_holder_end(Context& ctx, KeyRef k, const Holder& h, End why, TimeMs at) {
  const DurationMs held = at - h.held_since;
  ctx.s.stats.locks.record_end(mode_of(h.capacity), why, held);
  const uint64_t conn = ctx.actor ? ctx.actor.serial : h.client.serial;
  record(ctx, {wall_us_at(ctx, at), h.token, held, conn, event_of(why), k.db}, key_of(*k), h.owner,
         h.attachment.note);
}

void record_wait_end(Context& ctx, const Waiter& w, WaitEnd why) {
  const DurationMs waited = ctx.now.mono - w.since;
  ++ctx.s.stats.locks.wait_ends[why];
  ctx.s.contended.record(w.queue->db, w.queue->key_bytes, waited, why == WaitEnd::kGranted);
  // record_grant() has counted a grant, unless it was a repeat by a holder.
  if (why == WaitEnd::kGranted) return;
  record(ctx, {ctx.now.wall_us, {}, waited, w.conn.serial, event_of(why), w.queue->db}, w.queue->key_bytes,
         w.owner, w.note.value_or(""));
}

void record_deadlock(Context& ctx, const Conn& c, const LockRequest& r) {
  record(ctx, {ctx.now.wall_us, {}, {}, c.id.serial, LockEvent::kDeadlock, c.db}, r.key.bytes, r.owner,
         r.note.value_or(""));
}

void record_revoke(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   std::string_view note, Token token, TimeMs since) {
  record(ctx, {ctx.now.wall_us, token, ctx.now.mono - since, ctx.actor.serial, LockEvent::kRevoke, db}, key,
         owner, note);
}

}  // namespace holdfast
