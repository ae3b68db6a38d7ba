// Reads the clocks without a system call (vDSO).
#include "io/os/clock.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace holdfast {

namespace {

int64_t read_us(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000 + t.tv_nsec / 1000;
}

struct Readings {
  int64_t boot_us;
  int64_t wall_us;
};

// Returns readings of almost the same moment: the pair of a few that took the least time.
Readings read_at_once() {
  Readings best{};
  int64_t least_us = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const Readings now{read_us(CLOCK_BOOTTIME), read_us(CLOCK_REALTIME)};
    const int64_t took_us = read_us(CLOCK_BOOTTIME) - now.boot_us;
    if (took_us < least_us) best = now;
    least_us = std::min(least_us, took_us);
  }
  return best;
}

}  // namespace

bool AlignedClock::seems_set(int64_t boot_us, int64_t wall_us) const {
  return std::abs(wall_us - boot_us - lead_us_) > kMovedUs;
}

void AlignedClock::set(int64_t boot_us, int64_t wall_us) {
  constexpr int64_t kMs = 1000;
  lead_us_ = wall_us - boot_us;
  phase_us_ = (lead_us_ % kMs + kMs) % kMs;
}

Now AlignedClock::at(int64_t boot_us) {
  latest_us_ = std::max(latest_us_, boot_us + phase_us_);
  // Adds 1 ms to the clock, because the engine's callers use 0 as "no time", and the machine may just have
  // booted.
  return {TimeMs{latest_us_ / 1000 + 1}, latest_us_ - phase_us_ + lead_us_};
}

Now read_clock() {
  static AlignedClock clock;
  Readings now{read_us(CLOCK_BOOTTIME), read_us(CLOCK_REALTIME)};
  if (clock.seems_set(now.boot_us, now.wall_us)) {
    now = read_at_once();
    if (clock.seems_set(now.boot_us, now.wall_us)) clock.set(now.boot_us, now.wall_us);
  }
  return clock.at(now.boot_us);
}

int64_t read_stopwatch_us() { return read_us(CLOCK_MONOTONIC); }

}  // namespace holdfast
