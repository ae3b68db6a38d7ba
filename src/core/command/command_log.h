// How often commands ran and how long they took: for INFO, SLOWLOG and LATENCY. What is cheap is counted
// always and timed now and then; what may take long is timed always.
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

namespace holdfast {

struct Command;

// How many calls took how long. Each power of two of microseconds has four equal parts, so that a
// percentile is right to a quarter; to count a call takes a few instructions, and no memory but the
// counter.
class TimeHistogram {
 public:
  static constexpr size_t kPowers = 32;

  void add(uint64_t us) { ++counts_[std::min(part_of(us), counts_.size() - 1)]; }
  uint64_t calls() const;
  // Calls by the power of two that they stayed below.
  std::array<uint64_t, kPowers> by_power() const;
  // Microseconds within which so many percent of the calls ended; 0: there was no call.
  uint64_t percentile_us(double percent) const;

 private:
  static constexpr size_t kParts = 4;
  // 0, 1, 2 and 3 us have a part each; the power of two from 4 us on is the second.
  static size_t part_of(uint64_t us) {
    if (us < kParts) return us;
    const auto power = static_cast<size_t>(std::bit_width(us)) - 1;
    return (power - 1) * kParts + (us >> (power - 2) & (kParts - 1));
  }
  // The first microsecond that a part no longer has.
  static uint64_t end_of(size_t part) {
    if (part < kParts) return part + 1;
    return (kParts + part % kParts + 1) << (part / kParts - 1);
  }
  std::array<uint32_t, kParts*(kPowers - 1)> counts_{};
};

// One command's calls since the start. Times are of the calls that were timed.
struct CommandCounts {
  uint32_t sampled = 1;  // one call of so many is timed
  uint64_t calls = 0;
  uint64_t rejected = 0;  // before they ran: out of memory, the wrong number of arguments
  uint64_t failed = 0;    // they answered an error
  uint64_t timed = 0;
  uint64_t timed_us = 0;
  TimeHistogram histogram;  // of timed calls

  // Over all calls, by the timed ones.
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
  std::vector<std::string> argv;  // cut, as Redis cuts them
  std::string peer, name;
};

// What LATENCY keeps of one kind of event.
struct LatencyEvent {
  struct Sample {
    int64_t at_s = 0;
    int64_t ms = 0;
  };
  static constexpr size_t kMaxSamples = 160;
  std::deque<Sample> samples;  // one a second: its largest
  int64_t max_ms = 0;
};

class CommandLog {
 public:
  static constexpr size_t kMaxErrorCodes = 128;  // scripts may make up codes

  CommandLog();

  // Counts a call; true where it is to be timed.
  bool begin(const Command& command);
  // `tracked`: also for the percentiles.
  void record_time(const Command& command, int64_t us, bool tracked);
  // `again`: the error itself has been counted, as that of a command in a script.
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
  static constexpr uint32_t kSampled = 64;  // of cheap calls: those of O(1), which cannot take long
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
