// Reads the clocks without a system call (vDSO).
#include "io/os/clock.h"

#include <cstdlib>
#include <ctime>

namespace holdfast {

namespace {

int64_t microseconds(const timespec& t) { return int64_t{t.tv_sec} * 1000000 + t.tv_nsec / 1000; }

// Returns how far the wall clock is ahead of the other, in whole milliseconds. The two tick at different
// moments: with a new offset at each call a deadline would seem to move by a millisecond. So the offset
// stays until the wall clock has been set, which moves it by more than kMovedUs.
int64_t steady_offset_ms(int64_t wall_us, int64_t boot_us) {
  constexpr int64_t kMovedUs = 2000;
  static int64_t offset_ms = 0;
  const int64_t offset_us = wall_us - boot_us;
  if (std::abs(offset_us - offset_ms * 1000) > kMovedUs) offset_ms = offset_us / 1000;
  return offset_ms;
}

}  // namespace

Now read_clock() {
  timespec boot{};
  timespec wall{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t boot_us = microseconds(boot);
  const int64_t offset_ms = steady_offset_ms(microseconds(wall), boot_us);
  // Adds 1 ms to the clock, because the engine's callers use 0 as "no time", and the machine may just have
  // booted.
  return {TimeMs{boot_us / 1000 + 1}, boot_us + offset_ms * 1000};
}

int64_t read_stopwatch_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return microseconds(t);
}

}  // namespace holdfast
