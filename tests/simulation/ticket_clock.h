// A clock in microseconds: its offset and its rate relative to the world's time.
#pragma once

#include <cstdint>

namespace holdfast::simulation::ticket {

struct Clock {
  int64_t offset_us = 0;
  int64_t rate_ppm = 1'000'000;

  int64_t at(int64_t world_us) const { return offset_us + world_us * rate_ppm / 1'000'000; }
  // The first moment of the world at which the clock shows this time, or a later one.
  int64_t when(int64_t clock_us) const {
    const int64_t span = clock_us - offset_us;
    return span <= 0 ? 0 : (span * 1'000'000 + rate_ppm - 1) / rate_ppm;
  }
};

// The wall clock at the begin of a world.
inline constexpr int64_t kWallStartUs = 1'000'000'000'000;

}  // namespace holdfast::simulation::ticket
