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

// The request of `r.owner` was granted: a new hold. The entry of an exclusive hold already has its owner
// and its token.
inline void record_grant(Context& ctx, KeyRef k, Token token, ConnId client, const LockRequest& r) {
  LockStats& stats = ctx.s.stats.locks;
  const LockMode mode = mode_of(r.capacity);
  ++stats.grants[mode];
  if (r.queued) {
    ++stats.queued_grants[mode];
    stats.waits[static_cast<size_t>(mode)].record(r.waited);
  }
  if (!ctx.s.history.on()) return;
  if (mode == LockMode::kExclusiveMode && !r.note) [[likely]] {
    ctx.s.history.add_hold(*k, ctx.now.wall_us, r.waited, client.serial, LockEvent::kGranted, k.db);
    return;
  }
  ctx.s.history.add(r.key.bytes, r.owner, r.note.value_or("")) = {
      ctx.now.wall_us, token, r.waited, client.serial, LockEvent::kGranted, k.db};
}

// The wall clock at a time that may be in the past.
inline int64_t wall_us_at(const Context& ctx, TimeMs at) {
  return ctx.now.wall_us - (ctx.now.mono - at).count * 1000;
}

// The event of the end of an exclusive hold that has an attachment.
void record_attached_end(Context& ctx, KeyRef k, End why, TimeMs at);

// The connection of the event is that whose request runs.
inline void record_exclusive_end(Context& ctx, KeyRef k, End why, TimeMs at) {
  const DurationMs held = at - held_since(*k);
  ctx.s.stats.locks.record_end(LockMode::kExclusiveMode, why, held);
  if (!ctx.s.history.on()) return;
  if (k->attached) [[unlikely]]
    return record_attached_end(ctx, k, why, at);
  ctx.s.history.add_hold(*k, wall_us_at(ctx, at), held, ctx.actor.serial, event_of(why), k.db);
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
