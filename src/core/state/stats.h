// Counters of the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/types.h"
#include "core/state/lock_stats.h"

namespace holdfast {

// The totals of which INFO shows the present rates.
struct TrafficTotals {
  uint64_t commands = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

// Samples of the totals, at least 100 ms apart. The rates are means over the last 1.6 s. An idle server
// takes no samples, and needs none: the difference to the last one is then small.
class TrafficRates {
 public:
  struct PerSecond {
    double commands = 0;
    double read_bytes = 0;
    double written_bytes = 0;
  };
  static constexpr DurationMs kBetween{100};

  bool due(TimeMs now) const { return count_ == 0 || is_due(newest().at + kBetween, now); }
  void take(const TrafficTotals& totals, TimeMs now);
  PerSecond rates(const TrafficTotals& totals, TimeMs now) const;

 private:
  static constexpr size_t kSamples = 16;
  static constexpr DurationMs kWindow{static_cast<int64_t>(kSamples) * kBetween.count};
  struct Sample {
    TimeMs at;
    TrafficTotals totals;
  };
  // i = 0: the newest. i must be less than count_ and kSamples.
  const Sample& newest(size_t i = 0) const { return samples_[(count_ - 1 - i) % kSamples]; }

  std::array<Sample, kSamples> samples_{};
  size_t count_ = 0;
};

// Counters since the start, for INFO and the metrics.
struct Stats {
  TrafficTotals traffic;
  TrafficRates rates;
  uint64_t refused_connections = 0;
  uint64_t expired_keys = 0;
  uint64_t expired_fields = 0;  // of hashes
  uint64_t keyspace_hits = 0;
  uint64_t keyspace_misses = 0;
  LockStats locks;
  uint64_t deadlock_searches_given_up = 0;  // too many owners wait for one another
};

}  // namespace holdfast
