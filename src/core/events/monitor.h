// MONITOR: every request, shown to those who asked.
#pragma once

#include <span>
#include <string_view>

namespace holdfast {

struct Command;
struct Conn;
struct Context;

// Shows a request of a connection, or of a script of its.
void feed_monitors(Context& ctx, const Conn& from, const Command& command,
                   std::span<const std::string_view> argv, bool from_script);

// A connection has gone, or was reset.
void stop_monitoring(Context& ctx, Conn& c);

}  // namespace holdfast
