// The plan of a schedule: its parameters, and steps with times. One seed decides both. The steps are
// independent of each other: a plan without some of them is a plan, too, and the fates of the other
// messages stay the same. So a failed plan can be reduced to the necessary steps, and printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::simulation::redlock {

// A violation of the rules by the world, to see that the judge detects it.
enum class Flaw : uint8_t {
  kNone,
  kCounterReset,  // a restart resets a server's counters
  kClocksAstray,  // rates of clocks differ by more than the allowed drift
  kNoHealing,     // the LOCKs of renewals never arrive
  kNoRecovery,    // a restarted server grants during its recovery wait
};

enum class Mode : uint8_t { kExclusive, kShared, kCounted };

// What a restarted server still has: all, the state of an earlier moment (`appendonly no`), or nothing.
// It always has its token counters.
enum class Memory : uint8_t { kAll, kSnapshot, kNone };

// Times of the world are in microseconds, of its clocks in milliseconds.
struct Parameters {
  uint64_t seed = 0;
  Flaw flaw = Flaw::kNone;
  size_t servers = 3;
  size_t clients = 1;
  int64_t ttl_ms = 100;
  int64_t server_timeout_ms = 10;
  int64_t slowest_us = 500;       // the longest delay of a message
  uint64_t lost_one_in = 0;       // 0: never; the next ones too
  uint64_t resent_one_in = 0;     // LOCKs that arrive twice
  uint64_t overtaken_one_in = 0;  // LOCKs that later requests overtake
  bool clocks_differ = true;      // within the allowed drift
  bool clocks_agree = false;      // wall clocks: so that hints give equal tokens
  uint64_t ahead_us = 0;          // lead of one server's tokens over the others'
  size_t keys = 1;
  uint32_t limit = 0;  // of holders of the first key; 0: its locks are not counted

  // Whether a renewal surely completes in time if enough servers work.
  bool calm() const;
  // Whether locks of the key are counted.
  bool counts(size_t key) const;
};

struct Step {
  enum class Kind : uint8_t {
    kSession,  // a client acquires, holds, and releases
    kLeave,    // a server stops, and starts again
    kJump,     // a server's clock jumps forward: holds end early
    kCut,      // no message passes between a client and a server
    kStall,    // a client stands still
  };
  Kind kind = Kind::kSession;
  uint64_t id = 0;  // decides the random choices of the step; the plan's other steps do not matter
  int64_t at_us = 0;
  size_t client = 0;  // kSession, kCut, kStall
  size_t key = 0;     // kSession
  size_t server = 0;  // kLeave, kJump, kCut
  // The duration: of the hold, of the server's absence, of the cut. kJump: the width.
  int64_t for_us = 0;
  // kSession:
  Mode mode = Mode::kExclusive;
  bool renews = false;      // as HoldCore does; otherwise it renews and releases at random
  int64_t wait_ms = -1;     // -1: one attempt; 0: no limit
  int64_t cancel_us = 0;    // a wait is cancelled after this time; 0: never
  int64_t max_wait_ms = 2;  // the longest pause between attempts
  // kLeave:
  Memory memory = Memory::kAll;
  int64_t behind_us = 0;      // kSnapshot: its age at the stop
  int64_t loading_us = 0;     // the server answers -LOADING for this time
  int64_t recovery_ms = 0;    // after that -RECOVERING, on the server's clock
  bool once_healed = false;   // waits until all other servers work and have the holds of holders that renew
  bool reboots = false;       // the machine starts again: its monotonic clock begins near 0
  int64_t wall_moves_us = 0;  // the wall clock is set by this much meanwhile

  int64_t end_us() const;
};

inline const std::string kKeys[] = {"k", "l"};

struct Plan {
  Parameters world;
  std::vector<Step> steps;
};

Plan plan_of(uint64_t seed, Flaw flaw);
// One line for each parameter group and step.
std::string written(const Plan& plan);

}  // namespace holdfast::simulation::redlock
