// Counts and times of commands, for INFO, SLOWLOG and LATENCY. All calls are counted. Cheap commands are
// timed in samples; commands that may take long are always timed.
#pragma once

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/duration_histogram.h"

namespace holdfast {

struct Command;

// A histogram of durations. Each power of two of microseconds has four equal parts, so that a percentile is
// exact to 25 %. Counting a call takes a few instructions and allocates no memory.
class TimeHistogram {
 public:
  static constexpr size_t kPowers = 32;

  void add(uint64_t us) { ++counts_[std::min(part_of(us), counts_.size() - 1)]; }
  uint64_t calls() const;
  // Calls by the power of two (microseconds) that bounds their duration.
  std::array<uint64_t, kPowers> by_power() const;
  // The duration in microseconds within which `percent` of the calls ended. Returns 0 if there was no call.
  uint64_t percentile_us(double percent) const;

 private:
  static constexpr size_t kParts = 4;
  // 0, 1, 2 and 3 us have one part each. The power of two that begins at 4 us has the parts from the fifth
  // on.
  static size_t part_of(uint64_t us) {
    if (us < kParts) return us;
    const auto power = static_cast<size_t>(std::bit_width(us)) - 1;
    return (power - 1) * kParts + (us >> (power - 2) & (kParts - 1));
  }
  // The upper bound of a part in microseconds, exclusive.
  static uint64_t end_of(size_t part) {
    if (part < kParts) return part + 1;
    return (kParts + part % kParts + 1) << (part / kParts - 1);
  }
  std::array<uint32_t, kParts*(kPowers - 1)> counts_{};
};

// The calls of one command since the start. Times are those of the timed calls only.
struct CommandCounts {
  uint32_t sampled = 1;  // one of this many calls is timed
  uint64_t calls = 0;
  uint64_t rejected = 0;  // before they ran: out of memory, wrong number of arguments
  uint64_t failed = 0;    // the reply was an error
  uint64_t timed = 0;
  uint64_t timed_us = 0;
  TimeHistogram histogram;      // timed calls only
  DurationHistogram durations;  // the same, with the bounds of the metrics

  // The estimated time of all calls, from the timed ones, in microseconds.
  uint64_t us() const {
    return timed == 0 ? 0 : static_cast<uint64_t>(us_per_call() * static_cast<double>(calls));
  }
  double us_per_call() const {
    return timed == 0 ? 0 : static_cast<double>(timed_us) / static_cast<double>(timed);
  }
};

struct SlowCommand {
  uint64_t id = 0;
  int64_t at_s = 0;  // since 1970
  int64_t us = 0;
  std::vector<std::string> argv;  // shortened as in Redis
  std::string peer, name;
};

// The samples of one event in LATENCY.
struct LatencyEvent {
  struct Sample {
    int64_t at_s = 0;
    int64_t ms = 0;
  };
  static constexpr size_t kMaxSamples = 160;
  std::deque<Sample> samples;  // one per second: the largest of that second
  int64_t max_ms = 0;
};

class CommandLog {
 public:
  static constexpr size_t kMaxErrorCodes = 128;  // scripts may invent codes

  CommandLog();

  // Counts a call. Returns true if the caller must time it.
  bool begin(const Command& command);
  // `tracked`: also adds it to the histogram.
  void record_time(const Command& command, int64_t us, bool tracked);
  // `again`: the error itself has already been counted, for a command in a script.
  void record_failure(const Command& command, std::string_view reply, bool again);
  void record_rejection(const Command* command, std::string_view reply);
  void keep_slow(SlowCommand slow, size_t most);
  void record_latency(const std::string& event, int64_t at_s, int64_t ms);

  const CommandCounts& counts_of(const Command& command) const;
  const absl::btree_map<std::string, uint64_t>& errors() const { return errors_; }
  uint64_t all_errors() const { return all_errors_; }
  // The newest first.
  const std::deque<SlowCommand>& slow() const { return slow_; }
  void forget_slow() { slow_.clear(); }
  absl::btree_map<std::string, LatencyEvent>& latency() { return latency_; }
  void reset_counts();

 private:
  static constexpr uint32_t kSampled = 64;  // for cheap commands: O(1), which cannot take long
  CommandCounts& counts(const Command& command);
  void count_error(std::string_view reply);

  const Command* commands_;                        // all of them
  std::vector<CommandCounts> counts_;              // by row
  absl::btree_map<std::string, uint64_t> errors_;  // by code
  uint64_t all_errors_ = 0;
  std::deque<SlowCommand> slow_;
  uint64_t last_slow_id_ = 0;
  absl::btree_map<std::string, LatencyEvent> latency_;
};

}  // namespace holdfast
