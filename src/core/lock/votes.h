// Votes: the holds of ticketed requests that their clients have not confirmed. The functions of waiting.h
// and holds.h call these. docs/protocol.md has the rules.
#pragma once

#include <optional>
#include <string_view>

#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/lock_stats.h"
#include "core/state/wait_queue.h"

namespace holdfast {

struct Conn;

// Whether the waiter has no connection that can get a grant.
bool has_left(const EngineState& s, const Waiter& w);
// Whether a ticketed request may have a vote now: its client was heard of late, and hears the server.
bool is_eligible(const Context& ctx, const Waiter& w);
// Takes a request that is not eligible out of the line, until its client is heard.
void set_aside(Context& ctx, Waiter* w);
// The client of the connection was heard. `seen`: the newest time of this server that it has received.
void hear_client(Context& ctx, Conn& c, std::optional<TimeMs> seen);
// Returns some requests of the client to their queues, if it is heard now. The timer of `t` has fired.
void return_waits(Context& ctx, TicketClient* t);
// Returns one request to its queue.
void return_wait(Context& ctx, Waiter* w);
// Forgets that the request is set aside, as it leaves its connection.
void leave_client(Context& ctx, Waiter* w);

// Gives a request in line a vote if the holders admit it.
bool try_vote(Context& ctx, Waiter* w);
// The owner of the request has become a holder, or its hold was replaced. A hold in the mode of the request
// is its vote from now on.
void adopt_hold(Context& ctx, Waiter* w);
// Asks for the votes that keep out the first waiter that may ask, if it is older. `head` is the waiter that
// was not admitted; null: none is in line. Returns when the queue must be served again for that reason.
TimeMs ask_for_votes(Context& ctx, WaitQueue* q, const Waiter* head);
// The time at which the hold began, as its client may count it: the hold lasts for `ttl` from then on.
TimeMs vote_since(const Context& ctx, TimeMs deadline, DurationMs ttl);

// The connection of the request has ended. It leaves the queue later, unless its client comes again.
void detach_wait(Context& ctx, Waiter* w);
// That time is over.
void end_detached(Context& ctx, Waiter* w);

// A hold of a key with a queue ends; the hold is still there. If it is a vote, its request waits again. If
// it was ended by force, its request leaves the queue: the client may count the vote, and so hold the lock.
void end_vote(Context& ctx, KeyRef k, std::string_view owner, End why, TimeMs at);
// The token of a hold was raised.
void raise_vote(Context& ctx, KeyRef k, std::string_view owner, Token token);

}  // namespace holdfast
