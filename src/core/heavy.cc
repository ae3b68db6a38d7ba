// Who is put off as heavy, for how long, and who comes next.
#include "core/heavy.h"

#include "core/command.h"
#include "core/handlers.h"
#include "core/pause.h"
#include "core/requests.h"

namespace holdfast {

namespace {

constexpr int64_t kReplyBytesPerUs = 2048;  // made, and handed to the system: fresh memory each time
constexpr int64_t kHeavyUs = 500;           // what takes less is nobody's concern
// However long requests have taken, and however many: the pause behind the last of them ends.
constexpr DurationMs kLongestPause{10'000};
// A connection that was not heavy for so long is one of the others again.
constexpr DurationMs kOfLate{10'000};

bool is_of_scripts(const Command& command) {
  return (command.flags & kMovableKeys) != 0 || command.handler == cmd_script_load ||
         command.handler == cmd_exec;
}

// Neither of keys nor of scripts: ECHO, CLIENT LIST.
bool is_plain(const Command& command) {
  return (command.flags & (kReadOnly | kWrite)) == 0 && !is_of_scripts(command);
}

// Whether it may take as long as the connection's heavy one. What holds and releases locks never waits.
bool may_be_heavy(const Command& command, const Command& heavy) {
  if (command.group == "lock" && (command.flags & (kWrite | kFast)) != 0) return false;
  if (is_plain(command)) return is_plain(heavy);
  return (command.flags & kWrite) == 0 || (heavy.flags & kWrite) != 0;
}

}  // namespace

bool put_off_heavy(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv) {
  HeavyRequests& heavy = t.s.heavy;
  if (t.s.config.heavy_request_pause == 0 || !may_be_heavy(command, *c.heavy)) return false;
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
  const TimeMs end = t.now.mono + DurationMs{us / 1000};
  const TimeMs next_at = std::max(heavy.next_at, t.now.mono) + DurationMs{us * times / 1000};
  heavy.next_at = std::min(next_at, end + kLongestPause);
  const bool alone = is_due(heavy.others_at + HeavyRequests::kAlone, t.now.mono);
  if (!alone) heavy.others_at = end;  // till then they were kept silent
  c.heavy = c.last_command;
  c.one_of_others_from = end + kOfLate;
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
