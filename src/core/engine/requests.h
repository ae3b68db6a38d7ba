// One request, from the door to its reply: refused, queued for EXEC, put off by CLIENT PAUSE or by its own
// length, or run.
#pragma once

#include <span>
#include <string_view>

#include "core/state/state.h"

namespace holdfast {

// The connection must be able to go on: not blocked, not closing.
void dispatch_request(Context& ctx, Conn& c, std::span<const std::string_view> argv);
// The same while a script is over its time: few commands run, all others are answered -BUSY.
void dispatch_request_while_busy(Context& ctx, Conn& c, std::span<const std::string_view> argv);
// A request has been answered, now or, where it was put off, in an earlier turn. `answered` is the size
// that the connection's output had before.
void finish_request(Context& ctx, Conn& c, size_t answered);

// Runs what CLIENT PAUSE has kept, once that is over.
void run_postponed(Context& ctx);
// Runs what postpone() has kept with the connection.
void dispatch_postponed(Context& ctx, Conn& c);

// Whether the request has to wait.
bool is_paused(const Context& ctx, const Conn& c, const Command& command,
               std::span<const std::string_view> argv);
// Keeps it; the connection is blocked until it has been run.
void postpone(Conn& c, std::span<const std::string_view> argv);

}  // namespace holdfast
