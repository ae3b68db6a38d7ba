// The record of what clients of a lock have done, and its checks. All clients write to one folder, which
// has the counter that a token guards, the list of its writes, and the list of holds. Times are
// true_now_ns().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process.h"

namespace holdfast::integration {

// A write that the storage accepted. The list has the order of acceptance.
struct Write {
  uint64_t value = 0;
  uint64_t based_on = 0;  // the value that the writer had read
  uint64_t token = 0;
};

struct Held {
  uint64_t token = 0;
  int64_t asked_ns = 0;         // before the lock was requested
  int64_t acquired_ns = 0;      // after it was granted
  int64_t valid_ns = 0;         // the last time at which the hold was known to be valid; acquired_ns: never
  bool clock_is_right = false;  // whether the holder's drift is within what the library allows for
};

struct Span {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

// A counter in a file. It rejects a token that is smaller than the largest that it has seen. Reads count,
// too: otherwise a late writer could write between the next holder's read and write. Each process has its
// own Storage on the same folder. A stopped process may make the other processes wait.
class Storage {
 public:
  // The storage rejects writes after `target`.
  Storage(const std::filesystem::path& folder, uint64_t target);

  // The current value, without waiting for other processes.
  uint64_t value() const;
  uint64_t target() const { return target_; }
  // nullopt: the token is too old.
  std::optional<uint64_t> read(uint64_t token);
  // Makes it based_on + 1; false: the token is too old, or the target is reached.
  bool write(uint64_t token, uint64_t based_on);
  void note(const Held& held);

  static std::vector<Write> writes(const std::filesystem::path& folder);
  static std::vector<Held> holds(const std::filesystem::path& folder);

 private:
  struct State {
    uint64_t value = 0;
    uint64_t seen = 0;  // the largest token
  };
  class Guard;
  State load() const;
  void store(const State& state) const;

  Fd counter_;
  Fd writes_;
  Fd holds_;
  uint64_t target_;
};

// The faults as texts; empty if there are none.
// Each write must be one more than the previous write, be based on it, and have a larger token.
std::vector<std::string> faults_of_writes(const std::vector<Write>& writes, uint64_t final_value);
// Each token must occur once. A hold that was requested after another was acquired must have a larger
// token. Two holds with right clocks must not be valid at the same time. No hold may be requested and
// acquired within an outage, because there was no quorum.
std::vector<std::string> faults_of_holds(const std::vector<Held>& holds, const std::vector<Span>& outages);

}  // namespace holdfast::integration
