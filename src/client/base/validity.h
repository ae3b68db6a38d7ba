// For how long something that a server keeps for a while can be relied on.
#pragma once

#include <cmath>

#include "core/base/types.h"

namespace holdfast::client {

inline constexpr double kDrift = 0.01;  // of clocks, as a share of the ttl
// What clocks in whole milliseconds may be wrong by: the server's expiry, and the reader of `now`.
inline constexpr int64_t kGranularityMs = 2;

// Never beyond kNever, however long a ttl or a wait is.
inline TimeMs saturating_add(TimeMs from, DurationMs by) {
  return by.count >= kNever.count - from.count ? kNever : from + by;
}

// `from`: before it was asked for.
inline TimeMs end_of_validity(TimeMs from, DurationMs ttl, double drift = kDrift) {
  const auto uneven = static_cast<int64_t>(std::ceil(static_cast<double>(ttl.count) * drift));
  return saturating_add(from, {ttl.count - uneven - kGranularityMs});
}

// The shortest ttl that can be relied on for so long.
inline DurationMs ttl_for_validity(DurationMs validity) {
  const auto with_slack = static_cast<double>(validity.count + kGranularityMs);
  DurationMs ttl{static_cast<int64_t>(with_slack / (1 - kDrift))};
  while (end_of_validity({0}, ttl).count < validity.count) ++ttl.count;
  return ttl;
}

}  // namespace holdfast::client
