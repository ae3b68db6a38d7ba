// Reads the two clocks of the process. All other code gets the time as an argument.
#pragma once

#include <cstdint>

#include "core/base/types.h"

namespace holdfast {

// The engine's clock runs through suspends (CLOCK_BOOTTIME): a lock's TTL continues while a laptop sleeps.
// Only the thread of the loop may call it.
Now read_clock();
using ReadClock = Now (*)();

// Microseconds since an arbitrary start, to measure how long work takes.
int64_t read_stopwatch_us();

// The engine's clock from readings of the system's clocks, in microseconds. Its milliseconds begin with
// those of the wall clock, so that the TTL of a deadline that a client gives as wall time is exact. It
// never goes back. The wall clock's lead is kept until the wall clock is set: to read the two clocks takes
// time, and with a new lead at each reading a deadline would seem to move.
class AlignedClock {
 public:
  static constexpr int64_t kMovedUs = 500;

  // Whether the wall clock was set, or the process slept between the two readings.
  bool seems_set(int64_t boot_us, int64_t wall_us) const;
  void set(int64_t boot_us, int64_t wall_us);
  Now at(int64_t boot_us);

 private:
  int64_t lead_us_ = 0;    // of the wall clock
  int64_t phase_us_ = 0;   // what a millisecond of the boot clock is late by, 0 to 999
  int64_t latest_us_ = 0;  // the last result, before it is rounded
};

}  // namespace holdfast
