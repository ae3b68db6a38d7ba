// MONITOR: every request, shown to those who asked.
#pragma once

#include <span>
#include <string_view>

namespace holdfast {

struct Command;
struct Conn;
struct Turn;

// Shows a request of a connection, or of a script of its.
void feed_monitors(Turn& t, const Conn& from, const Command& command,
                   std::span<const std::string_view> argv, bool from_script);

// A connection has gone, or was reset.
void stop_monitoring(Turn& t, Conn& c);

}  // namespace holdfast
