// Writes requests as MONITOR shows them.
#include "core/events/monitor.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "core/command/command.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/output.h"

namespace holdfast {

namespace {

std::string line_of(Context& ctx, const Conn& from, const Command& command,
                    std::span<const std::string_view> argv, bool from_script) {
  char time[48];
  std::snprintf(time, sizeof time, "%lld.%06lld", static_cast<long long>(ctx.now.wall_us / 1000000),
                static_cast<long long>(ctx.now.wall_us % 1000000));
  std::string line = time;
  line += " [" + std::to_string(ctx.s.db_name[from.db]) + " " + (from_script ? "lua" : from.peer) + "]";
  size_t left = kMonitoredBytes;
  for (size_t i = 0; i < argv.size(); ++i) {
    line += ' ';
    if (left == 0) return line + "... (" + std::to_string(argv.size() - i) + " more arguments)";
    append_quoted(line, is_secret(command, argv, i) ? std::string(kRedacted) : cut_text(argv[i], left));
    left -= std::min(left, argv[i].size() + 1);
  }
  return line;
}

}  // namespace

void feed_monitors(Context& ctx, const Conn& from, const Command& command,
                   std::span<const std::string_view> argv, bool from_script) {
  // EVAL and its relatives have the flag only because Redis shows them at another place; they are shown
  // here.
  const bool hidden = command.has(kSkipMonitor) && !command.has(kScript);
  if (hidden || command.has(kAdmin)) return;
  const std::string line = line_of(ctx, from, command, argv, from_script);
  for (const ConnId id : ctx.s.monitors) {
    Conn& c = ctx.s.conns.at(id);
    if (!c.closing) push_to(ctx, c).simple(line);
  }
}

void stop_monitoring(Context& ctx, Conn& c) {
  if (!c.monitor) return;
  c.monitor = false;
  std::erase(ctx.s.monitors, c.id);
}

}  // namespace holdfast
