// Writes requests as MONITOR shows them.
#include "core/monitor.h"

#include <cstdio>
#include <string>

#include "core/command.h"
#include "core/handlers.h"

namespace holdfast {

namespace {

// As a person could type it: quoted, with escapes for what cannot be printed.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    static constexpr std::string_view kPlain = "\\\"\n\r\t\a\b";
    static constexpr std::string_view kEscaped = "\\\"nrtab";
    const size_t special = kPlain.find(c);
    if (special != std::string_view::npos) {
      out.append("\\").push_back(kEscaped[special]);
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      out += hex;
    }
  }
  out += '"';
}

// Passwords are not for everybody's eyes.
bool is_secret(const Command& command, std::span<const std::string_view> argv, size_t i) {
  if (command.handler == cmd_auth) return i > 0;
  if (command.handler != cmd_hello) return false;
  for (size_t at = 2; at < i; ++at) {
    if (equals_ignore_case(argv[at], "AUTH") && i <= at + 2) return true;
  }
  return false;
}

std::string line_of(Turn& t, const Conn& from, const Command& command,
                    std::span<const std::string_view> argv, bool from_script) {
  char time[48];
  std::snprintf(time, sizeof time, "%lld.%06lld", static_cast<long long>(t.now.wall_us / 1000000),
                static_cast<long long>(t.now.wall_us % 1000000));
  std::string line = time;
  line += " [" + std::to_string(t.s.db_name[from.db]) + " " + (from_script ? "lua" : from.peer) + "]";
  for (size_t i = 0; i < argv.size(); ++i) {
    line += ' ';
    append_quoted(line, is_secret(command, argv, i) ? "(redacted)" : argv[i]);
  }
  return line;
}

}  // namespace

void feed_monitors(Turn& t, const Conn& from, const Command& command,
                   std::span<const std::string_view> argv, bool from_script) {
  // Scripts are left out by their flag only because Redis shows them at another place.
  const bool hidden = (command.flags & kSkipMonitor) != 0 && (command.flags & kMovableKeys) == 0;
  if (hidden || (command.flags & kAdmin) != 0) return;
  const std::string line = line_of(t, from, command, argv, from_script);
  for (const ConnId id : t.s.monitors) {
    Conn& c = t.s.conns.at(id);
    if (!c.closing) push_to(t, c).simple(line);
  }
}

void stop_monitoring(Turn& t, Conn& c) {
  if (!c.monitor) return;
  c.monitor = false;
  std::erase(t.s.monitors, c.id);
}

void cmd_monitor(Request& r) {
  if (r.c.monitor) return;  // without an answer, as Redis
  r.s().monitors.push_back(r.c.id);
  r.c.monitor = true;
  r.reply.ok();
}

}  // namespace holdfast
