#include "core/heavy.h"

#include <utility>

#include "core/command.h"
#include "core/handlers.h"
#include "core/pause.h"
#include "core/requests.h"

namespace holdfast {

namespace {

constexpr int64_t kReplyBytesPerUs = 2048;  // made, and handed to the system: fresh memory each time
constexpr int64_t kHeavyUs = 500;           // what takes less is nobody's concern
// However long a request has taken, the pause behind it ends.
constexpr int64_t kLongestPauseMs = 10'000;
// A connection that was not heavy for so long is one of the others again.
constexpr DurationMs kOfLate{10'000};

// Whether it may take as long as the connection's heavy one. Locks are never kept waiting.
bool may_be_heavy(const Command& command, const Command& heavy) {
  if (command.group == "lock") return false;
  const bool of_scripts = (command.flags & kMovableKeys) != 0 || command.handler == cmd_script_load;
  const bool both_write = (command.flags & heavy.flags & kWrite) != 0;
  return of_scripts || both_write || (command.flags & kReadOnly) != 0 || command.handler == cmd_exec;
}

}  // namespace

bool put_off_heavy(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv) {
  HeavyRequests& heavy = t.s.heavy;
  if (!may_be_heavy(command, *c.heavy)) return false;
  if (heavy.waiting.empty() && is_due(heavy.due(), t.now.mono)) {
    c.heavy = nullptr;
    return false;
  }
  c.waits_as_heavy = true;
  heavy.waiting.push_back(c.id);
  postpone(c, argv);
  return true;
}

void note_heavy(Turn& t, Conn& c, int64_t script_us, size_t reply_bytes) {
  const bool large = reply_bytes >= kLargeReply;
  if (!large && script_us < kHeavyUs) return;
  const int64_t us = script_us + (large ? static_cast<int64_t>(reply_bytes) / kReplyBytesPerUs : 0);
  const int64_t times = t.s.config.heavy_request_pause;
  HeavyRequests& heavy = t.s.heavy;
  ++heavy.count;
  if (times == 0) return;
  const DurationMs pause{std::min(us * times / 1000, kLongestPauseMs)};
  heavy.next_at = std::max(heavy.next_at, t.now.mono) + pause;
  c.heavy = c.last_command;
  c.one_of_others_from = t.now.mono + kOfLate;
}

void run_heavy(Turn& t) {
  HeavyRequests& heavy = t.s.heavy;
  while (!heavy.waiting.empty() && is_due(heavy.due(), t.now.mono)) {
    Conn* c = t.s.conns.find(heavy.waiting.front());
    heavy.waiting.pop_front();
    if (c == nullptr || c->postponed.empty()) continue;  // it has gone meanwhile
    c->waits_as_heavy = false;
    c->heavy = nullptr;
    return take_postponed(t, *c);
  }
}

std::optional<TimeMs> next_heavy(const HeavyRequests& heavy) {
  if (heavy.waiting.empty()) return std::nullopt;
  return heavy.due();
}

}  // namespace holdfast
