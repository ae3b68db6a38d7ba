// MONITOR: sends every request to the clients that asked for it.
#pragma once

#include <span>
#include <string_view>

namespace holdfast {

struct Command;
struct Conn;
struct Context;

// Sends a request of a connection, or of a script that it runs, to the monitors.
void feed_monitors(Context& ctx, const Conn& from, const Command& command,
                   std::span<const std::string_view> argv, bool from_script);

// Removes a connection that disconnected or was reset from the monitors.
void stop_monitoring(Context& ctx, Conn& c);

}  // namespace holdfast
