// Counts what happens to locks, and records it for LOCKS HISTORY. The functions that every LOCK and UNLOCK
// calls are inline, and cheap.
#pragma once

#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/acquire.h"
#include "core/state/attachments.h"
#include "core/state/context.h"
#include "core/state/history.h"
#include "core/state/key_ref.h"
#include "core/state/lock_stats.h"
#include "core/state/stats.h"

namespace holdfast {

// The request of `r.owner` was granted: a new hold. The entry of an exclusive hold already has its owner.
inline void record_grant(Context& ctx, KeyRef k, Token token, ConnId client, const LockRequest& r) {
  LockStats& stats = ctx.s.stats.locks;
  const LockMode mode = mode_of(r.capacity);
  ++stats.grants[mode];
  if (r.queued) {
    ++stats.queued_grants[mode];
    stats.waits[static_cast<size_t>(mode)].record(r.waited);
  }
  if (!ctx.s.history.on()) return;
  const bool plain = mode == LockMode::kExclusiveMode && !r.note;
  LockEventFacts& facts = plain ? ctx.s.history.add_adjacent(key_of(*k), value_of(*k))
                                : ctx.s.history.add(r.key.bytes, r.owner, r.note.value_or(""));
  facts = {ctx.now.wall_us, token, r.waited, {}, client, LockEvent::kGranted, k.db};
}

// The facts of the end of a hold, at a time that may be in the past. The connection is that whose request
// runs.
inline LockEventFacts facts_of_end(const Context& ctx, DbIndex db, Token token, End why, TimeMs since,
                                   TimeMs at) {
  const int64_t at_us = ctx.now.wall_us - (ctx.now.mono - at).count * 1000;
  return {at_us, token, {}, at - since, ctx.actor, event_of(why), db};
}

inline void record_exclusive_end(Context& ctx, KeyRef k, End why, TimeMs at) {
  const TimeMs since = held_since(*k);
  ctx.s.stats.locks.record_end(LockMode::kExclusiveMode, why, at - since);
  if (!ctx.s.history.on()) return;
  const Attachment* a = attachment_of(ctx.s.attachments, k.db, k.f);
  LockEventFacts& facts = a == nullptr ? ctx.s.history.add_adjacent(key_of(*k), value_of(*k))
                                       : ctx.s.history.add(key_of(*k), value_of(*k), a->note);
  facts = facts_of_end(ctx, k.db, token_of(*k), why, since, at);
  if (a != nullptr && !facts.conn) facts.conn = a->conn;  // a timer or the end of the session ends it
}

// The key became a string that is a new hold, by a command other than LOCK.
void record_set_hold(Context& ctx, KeyRef k);
void record_holder_end(Context& ctx, KeyRef k, const Holder& h, End why, TimeMs at);
void record_wait_end(Context& ctx, const Waiter& w, WaitEnd why);
void record_deadlock(Context& ctx, const Conn& c, const LockRequest& r);
// LOCKS REVOKE asked a holder for its hold.
void record_revoke(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   std::string_view note, Token token, TimeMs since);

}  // namespace holdfast
