// One step of a simulated run, and the seed's choices for the whole run. A run is a list of steps. It can
// be written, read back, shortened, and printed in the format of tests/transcripts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.h"

namespace holdfast::simulation {

// The start values of the engine's clock and the wall clock, as in the transcripts.
inline constexpr int64_t kStartMs = 5000;
inline constexpr int64_t kStartWallUs = 1000000000000000;

struct Step {
  enum class Kind : uint8_t { kOpen, kDrop, kCommand, kPass, kTick };
  Kind kind = Kind::kTick;
  int conn = 0;                   // the connection's index in the run: 0, 1, 2 ...
  int64_t pass_ms = 0;            // kPass: so much time passes, while the loop sleeps
  std::vector<std::string> args;  // kCommand; "@3" stands for the id of connection 3
};

// The choices of one seed for a whole run.
struct Profile {
  explicit Profile(uint64_t seed);

  Config config() const;

  uint64_t seed;
  int conns;
  int keys;
  int owners;
  int databases;
  bool look_always;  // read LOCKS INFO of every key after each step
  bool transactions;
  bool ticks_first;  // a loop iteration starts with a tick
  int64_t session_grace_ms;
  uint32_t waiters;
  uint32_t waiters_per_key;
  uint32_t max_ended_leases;
  uint64_t token_floor;
};

// Bytes from which read_steps() restores the same steps; it ignores an incomplete last step.
std::string written(const Step& step);
std::vector<Step> read_steps(std::string_view bytes);

std::string conn_name(int conn);
// Returns a command line as a person would type it.
std::string command_line(const std::vector<std::string>& args);
// Returns the first lines of a run's transcript.
std::string transcript_head(const Profile& profile);

}  // namespace holdfast::simulation
