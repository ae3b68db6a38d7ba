// Reads the clocks without a system call (vDSO).
#include "io/clock.h"

#include <ctime>

namespace holdfast {

Now read_clock() {
  timespec boot{};
  timespec wall{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  // One more than the clock says, because 0 is no time to the engine's callers and a machine may just have
  // booted.
  const int64_t mono_ms = int64_t{boot.tv_sec} * 1000 + boot.tv_nsec / 1000000 + 1;
  return {TimeMs{mono_ms}, int64_t{wall.tv_sec} * 1000000 + wall.tv_nsec / 1000};
}

int64_t read_stopwatch_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000 + t.tv_nsec / 1000;
}

}  // namespace holdfast
