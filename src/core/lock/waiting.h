// The queues of keys: requests that wait, and whose turn it is.
#pragma once

#include "core/lock/acquire.h"
#include "core/state/state.h"

namespace holdfast {

// Queues a request that was not admitted. `upgrade`: its owner is a holder.
Acquisition wait_for(Context& ctx, Conn& c, const LockRequest& request, Keyspace::Found& f, bool upgrade);
// Lets in whom the changes of this turn admit. Called once a turn, after the request, script or
// transaction.
void serve_queues(Context& ctx);
inline void serve_ready_queues(Context& ctx) {
  if (ctx.s.queues.any_ready()) serve_queues(ctx);
}
// Ends a wait without a grant; the waiter is destroyed. Nothing is written to its connection.
void cancel_wait(Context& ctx, Waiter* w);
// Those of a connection, at most so many: the oldest first.
void cancel_waits(Context& ctx, Conn& c, size_t most = SIZE_MAX);
void end_wait_by_timeout(Context& ctx, Waiter* w);
// Makes sure that the key has a queue; the entry must exist.
WaitQueue* queue_of(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f);

}  // namespace holdfast
