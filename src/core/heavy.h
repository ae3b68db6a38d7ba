// Heavy requests: those that nobody can be served beside, and that cannot be cut. A script that takes long,
// a reply of half a megabyte. What they cost is bounded in sum: after one that took T all of them wait for
// `heavy-request-pause` times T, so that of the others' requests few meet one. They wait in their order,
// with those of their connection's requests that may be heavy again; locks are never put off. A client that
// has the server for itself is not held up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>

#include "core/conn.h"
#include "core/types.h"

namespace holdfast {

struct Command;
struct Turn;

inline constexpr size_t kLargeReply = size_t{512} << 10U;

struct HeavyRequests {
  // Without a request of others for so long, nobody is there to be spared.
  static constexpr DurationMs kAlone{1000};

  std::deque<ConnId> waiting;
  TimeMs next_at;  // the pause ends
  // The last request of a connection that has had no heavy one of late.
  TimeMs others_at = TimeMs{} - kAlone;
  uint64_t count = 0;  // since the start

  // When the next may run.
  TimeMs due() const { return std::min(next_at, others_at + kAlone); }
};

// A request of a connection that has had a heavy one is about to run. True: it has been put off, as it may
// be heavy as well.
bool put_off_heavy(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv);
// A request has run whose reply is large, or whose scripts were heavy: see ScriptHost::take_heavy_us().
void note_heavy(Turn& t, Conn& c, int64_t script_us, size_t reply_bytes);
// A connection has asked for something.
inline void note_request(HeavyRequests& heavy, const Conn& c, Now now) {
  if (is_due(c.one_of_others_from, now.mono)) heavy.others_at = std::max(heavy.others_at, now.mono);
}
// Runs the first of those put off, when it is due.
void run_heavy(Turn& t);
// When run_heavy() has something to do; nullopt: nobody waits.
std::optional<TimeMs> next_heavy(const HeavyRequests& heavy);

}  // namespace holdfast
