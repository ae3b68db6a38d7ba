// The machine of the simulated server: its clocks, its boot id and its random source. The functions of
// io/os/clock.h and io/os/host_info.h read it.
#pragma once

#include <cstdint>
#include <string>

#include "../dice.h"
#include "core/base/types.h"

namespace holdfast::simulation {

struct Machine {
  int64_t booted_us = 0;      // the true time of the last boot, a multiple of 1000
  int64_t wall_ahead_ms = 0;  // the wall clock's distance from the true time
  uint64_t boots = 1;
  int64_t stopwatch_us = 20;  // the time that work takes between two looks at the stopwatch
  Dice dice{1};

  static Machine& get();
  void reboot();
  // The present moment on the clocks of the machine.
  Now now() const;
  // A clock by which the engine's times are true times in milliseconds.
  Now true_time() const { return {TimeMs{1}, booted_us}; }
  std::string boot_id() const;
};

// The true time at the start of each run; the wall clock shows the same.
inline constexpr int64_t kFirstUs = 1'700'000'000'000'000;

}  // namespace holdfast::simulation
