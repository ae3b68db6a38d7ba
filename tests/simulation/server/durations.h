// Durations in microseconds, the unit of simulated time.
#pragma once

#include <cstdint>

namespace holdfast::simulation {

inline constexpr int64_t kMsUs = 1000;
inline constexpr int64_t kSecondUs = 1'000'000;

}  // namespace holdfast::simulation
