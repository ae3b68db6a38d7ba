// The queues of keys: enqueues requests that wait, serves them, and ends waits.
#pragma once

#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/lock_stats.h"
#include "core/state/wait_queue.h"

namespace holdfast {

struct Conn;

// Queues a request that was not admitted. `upgrade`: its owner holds the key in a weaker mode.
Acquisition wait_for(Context& ctx, Conn& c, const LockRequest& request, Keyspace::Found& f, bool upgrade);
// Grants the waiting requests that the changes of this engine call admit. Called once per engine call,
// after the request, script or transaction.
void serve_queues(Context& ctx);
inline void serve_ready_queues(Context& ctx) {
  if (ctx.s.queues.any_ready()) serve_queues(ctx);
}
// Ends a wait without a grant; the waiter is destroyed. Nothing is written to its connection.
void cancel_wait(Context& ctx, Waiter* w, WaitEnd why);
// Ends the waits of a connection, at most `most`, the oldest first.
void cancel_waits(Context& ctx, Conn& c, WaitEnd why, size_t most = SIZE_MAX);
// Ends a wait as its timeout does: with null, or a push. `why` may also be CLIENT UNBLOCK.
void end_wait_by_timeout(Context& ctx, Waiter* w, WaitEnd why = WaitEnd::kTimeout);
// The same for all requests of an owner that wait for the key.
void end_waits_of_owner(Context& ctx, DbIndex db, const Key& key, std::string_view owner);
// Returns the queue of the key, and makes one if it has none. The entry must exist.
WaitQueue* queue_of(Context& ctx, KeyRef k, const Key& key);

}  // namespace holdfast
