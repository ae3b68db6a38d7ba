// For how long a client can rely on a hold or a lease that a server keeps for a TTL.
#pragma once

#include <cmath>

#include "core/base/types.h"

namespace holdfast::client {

inline constexpr double kDrift = 0.01;  // drift of clocks, as a share of the TTL
// The error of clocks that count whole milliseconds: 1 ms at the server's expiry, 1 ms at the reader of
// `now`.
inline constexpr int64_t kGranularityMs = 2;

// Returns from + by, at most kNever, for any TTL or wait.
inline TimeMs saturating_add(TimeMs from, DurationMs by) {
  return by.count >= kNever.count - from.count ? kNever : from + by;
}

// Returns until when the client can rely on the hold. `from`: a time before the request was sent.
inline TimeMs end_of_validity(TimeMs from, DurationMs ttl, double drift = kDrift) {
  const auto uneven = static_cast<int64_t>(std::ceil(static_cast<double>(ttl.count) * drift));
  return saturating_add(from, {ttl.count - uneven - kGranularityMs});
}

// Returns the shortest TTL that gives this validity.
inline DurationMs ttl_for_validity(DurationMs validity) {
  const auto with_slack = static_cast<double>(validity.count + kGranularityMs);
  DurationMs ttl{static_cast<int64_t>(with_slack / (1 - kDrift))};
  while (end_of_validity({0}, ttl).count < validity.count) ++ttl.count;
  return ttl;
}

}  // namespace holdfast::client
