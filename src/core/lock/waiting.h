// The queues of keys: enqueues requests that wait for locks, serves requests of both kinds, and ends waits.
// values/pop_waiting.h enqueues those that wait for elements.
#pragma once

#include <memory>

#include "core/codec/reply.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/lock_stats.h"
#include "core/state/wait_queue.h"

namespace holdfast {

struct Conn;

// Queues a request that was not admitted. `upgrade`: its owner holds the key in a weaker mode. `ticket`:
// null for a plain request. A ticketed one never blocks the connection.
Acquisition wait_for(Context& ctx, Conn& c, const LockRequest& request, Keyspace::Found& f, bool upgrade,
                     std::unique_ptr<Ticket> ticket = nullptr);
// Whether a request is in line that a new request must not pass.
bool has_line(Context& ctx, WaitQueue* q);
// The request of a waiter, as it is admitted.
LockRequest request_of(const Context& ctx, const Waiter& w);
// Begins a push about a waiter with its first four elements: "lock", `what`, key and owner.
Reply open_push(Context& ctx, Conn& c, size_t elements, std::string_view what, const Waiter& w);
// Grants the waiting requests that the changes of this engine call admit. Called once per engine call,
// after the request, script or transaction.
void serve_queues(Context& ctx);
inline void serve_ready_queues(Context& ctx) {
  if (ctx.s.queues.any_ready()) serve_queues(ctx);
}
// Ends a wait of any kind; the request is destroyed. Nothing is written to its connection. If a ticketed
// request loses its connection, it only leaves that: see detach_wait().
void cancel_wait(Context& ctx, WaitingRequest* w, WaitEnd why);
// Ends the waits of a connection, at most `most`, the oldest first.
void cancel_waits(Context& ctx, Conn& c, WaitEnd why, size_t most = SIZE_MAX);
// Ends a wait as its timeout does: with null, or a push. `why` may also be CLIENT UNBLOCK.
void end_wait_by_timeout(Context& ctx, WaitingRequest* w, WaitEnd why = WaitEnd::kTimeout);
// The same for all requests of an owner that wait for the key.
void end_waits_of_owner(Context& ctx, DbIndex db, const Key& key, std::string_view owner);
// Removes a request that waits for elements from its queues, and from its connection if it is there.
std::unique_ptr<PopWaiter> remove_pop_wait(Context& ctx, PopWaiter* w);
// Forgets the empty places of the queues whose time is over.
void end_empty_places(Context& ctx);
// Returns the queue of the key, and makes one if it has none. The entry must exist.
WaitQueue* queue_of(Context& ctx, KeyRef k, const Key& key);

// Adds a request to those of its connection, with its timeout (0: none). It blocks the connection unless it
// is ASYNC.
void join_connection(Context& ctx, Conn& c, WaitingRequest* w, DurationMs timeout, bool blocks);
// Removes it from there. A blocked connection resumes.
void leave_connection(Context& ctx, WaitingRequest* w);
// CLIENT REPLY, for a reply that follows later than its request: returns whether the reply is not wanted.
bool is_muted(Conn& c);

}  // namespace holdfast
