// A histogram of durations with the bounds 100 us x 2^n, as the metrics show it. Counting a duration takes
// a few instructions, without a loop.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/base/types.h"

namespace holdfast {

class DurationHistogram {
 public:
  static constexpr size_t kBounds = 21;  // 100 us to 104.8576 s; one more bucket counts what is longer
  static constexpr uint64_t kFirstBoundUs = 100;

  // The largest duration in bucket `n`, for n < kBounds.
  static constexpr uint64_t bound_us(size_t n) { return kFirstBoundUs << n; }

  void record_us(uint64_t us) {
    ++counts_[bucket_of(us == 0 ? 0 : (us - 1) / kFirstBoundUs)];
    sum_us_ += us;
  }
  // A negative duration, after a wall clock went back, counts as 0.
  void record(DurationMs d) {
    const auto ms = static_cast<uint64_t>(std::max<int64_t>(d.count, 0));
    static_assert(1000 % kFirstBoundUs == 0);
    ++counts_[bucket_of(ms * (1000 / kFirstBoundUs) - (ms != 0))];
    sum_us_ += ms * 1000;
  }
  // Counts `n` durations of 0 us.
  void add_zeros(uint64_t n) { counts_[0] += n; }

  // Not cumulative.
  uint64_t in_bucket(size_t n) const { return counts_[n]; }
  uint64_t sum_us() const { return sum_us_; }
  uint64_t count() const {
    uint64_t all = 0;
    for (const uint64_t n : counts_) all += n;
    return all;
  }

 private:
  // `steps`: how often the first bound goes into the duration less 1 us.
  static size_t bucket_of(uint64_t steps) {
    return std::min(static_cast<size_t>(std::bit_width(steps)), kBounds);
  }

  std::array<uint64_t, kBounds + 1> counts_{};
  uint64_t sum_us_ = 0;
};

}  // namespace holdfast
