// One server of a schedule: an engine with a clock and a journal. It stops and starts with all, a part or
// none of its memory.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/state/tokens.h"
#include "redlock_plan.h"

namespace holdfast::simulation::redlock {

// A clock: its offset and its rate relative to the world's time.
struct Clock {
  int64_t start_ms = 0;
  int64_t rate_ppm = 1000000;
  int64_t at(int64_t us) const { return start_ms + us * rate_ppm / 1000000000; }
  // Returns the first moment of the world, in us, at which the clock shows this.
  int64_t when(int64_t ms) const { return ((ms - start_ms) * 1000000000 + rate_ppm - 1) / rate_ppm; }
};

// The wall clock at the begin of a schedule: so late that it can be set back by hours.
inline constexpr int64_t kWallStartUs = 360'000'000'000;

// The state of a key on a server.
struct KeyState {
  std::vector<std::pair<std::string, int64_t>> holders;  // owner, and the remaining ttl in ms
  bool waiters = false;
};

class Server {
 public:
  // A client's connection, or the connection of a wait.
  struct Link {
    ConnId id;
    int64_t asked_us = 0;  // the latest arrival at the server: no request overtakes it
    int64_t received_us = 0;
  };
  // Session, and send id for waits, or 0.
  using LinkName = std::pair<size_t, uint64_t>;

  void start(int64_t now_us, const IssuedTokens& before);
  // Ends all connections. Returns the waits, which get no reply any more.
  std::map<uint64_t, LinkName> stop(int64_t now_us);
  // Starts again. `reset`: without the token counters. If the machine restarts, `clock` shows other times.
  void restart(int64_t now_us, const Step& step, bool reset);

  bool up() const { return engine_ != nullptr; }
  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  Now now(int64_t now_us) const {
    return {TimeMs{clock.at(now_us)}, kWallStartUs + wall_moved_us_ + now_us};
  }
  bool recovering(int64_t now_us);
  // Runs the request and returns the reply, if it came at once.
  std::string apply(ConnId id, const std::vector<std::string>& argv, int64_t now_us, Effects& fx);
  std::string taken(ConnId id);
  // Takes over the engine's journal records; call it after each change.
  void collect(int64_t now_us);
  // The request may end a hold that is due, and so grant a wait: the caller handles `fx`.
  KeyState look(const std::string& key, int64_t now_us, Effects& fx);

  Clock clock;
  std::map<LinkName, Link> links;
  std::map<uint64_t, LinkName> waits;  // by serial: the receiver
  bool loading = false;

 private:
  std::unique_ptr<Engine> engine_;
  ConnId probe_;
  std::string journal_;
  std::vector<std::pair<int64_t, size_t>> sizes_;  // of the journal, after each change
  IssuedTokens issued_;                            // at the stop
  int64_t stopped_us_ = 0;
  int64_t wall_moved_us_ = 0;
  uint64_t boots_ = 0;          // of its machine
  int64_t first_ahead_ms_ = 0;  // see Config::first_ahead_ms
};

}  // namespace holdfast::simulation::redlock
