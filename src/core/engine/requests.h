// One request from its arrival to its reply: it is rejected, queued for EXEC, deferred (by CLIENT PAUSE or
// by its own length), or run.
#pragma once

#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/state/context.h"

namespace holdfast {

struct Conn;

// Handles one request of a connection that is neither blocked nor closing.
void dispatch_request(Context& ctx, Conn& c, std::span<const std::string_view> argv);
// The same while a script exceeds its time limit: few commands run, all others get -BUSY.
void dispatch_request_while_busy(Context& ctx, Conn& c, std::span<const std::string_view> argv);
// Completes a request after its reply: applies the reply mode, serves queues, sends invalidations and the
// pushes that had to wait. A deferred request completes in a later loop iteration. `answered` is the size
// of the connection's output (bytes) before the reply.
void finish_request(Context& ctx, Conn& c, size_t answered);

// Runs the requests that CLIENT PAUSE deferred, once the pause is over.
void run_postponed(Context& ctx);
// Runs the request that postpone() stored with the connection.
void dispatch_postponed(Context& ctx, Conn& c);

// Whether CLIENT PAUSE defers the request.
bool is_paused(const Context& ctx, const Conn& c, const Command& command,
               std::span<const std::string_view> argv);
// Stores the request with the connection, which is blocked until the request has run.
void postpone(Conn& c, std::span<const std::string_view> argv);

}  // namespace holdfast
