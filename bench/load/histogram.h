// A histogram of times in buckets less than 1 % wide (the idea of HdrHistogram). No value is averaged, and
// the longest is exact.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace holdfast::bench {

class Histogram {
 public:
  void record(uint64_t ns) {
    ++counts_[index(ns)];
    ++count_;
    longest_ns_ = std::max(longest_ns_, ns);
  }
  uint64_t count() const { return count_; }
  uint64_t longest_ns() const { return longest_ns_; }
  // Returns the time that the share `share` (0 .. 1) of all values does not exceed.
  uint64_t quantile_ns(double share) const {
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return std::min(top_of(i), longest_ns_);
    }
    return longest_ns_;
  }
  // Returns the number of values longer than `ns`.
  uint64_t above(uint64_t ns) const {
    uint64_t seen = 0;
    for (size_t i = index(ns) + 1; i < counts_.size(); ++i) seen += counts_[i];
    return seen;
  }

 private:
  static constexpr unsigned kBits = 7;
  static constexpr uint64_t kSteps = uint64_t{1} << kBits;  // buckets for each power of two

  static size_t index(uint64_t ns) {
    if (ns < kSteps) return ns;
    const unsigned shift = static_cast<unsigned>(std::bit_width(ns)) - 1 - kBits;
    return (shift + 1) * kSteps + ((ns >> shift) - kSteps);
  }
  static uint64_t top_of(size_t index) {
    if (index < kSteps) return index;
    const uint64_t shift = index / kSteps - 1;
    return ((kSteps + index % kSteps + 1) << shift) - 1;
  }

  std::array<uint64_t, (64 - kBits + 1) * kSteps> counts_{};
  uint64_t count_ = 0;
  uint64_t longest_ns_ = 0;
};

}  // namespace holdfast::bench
