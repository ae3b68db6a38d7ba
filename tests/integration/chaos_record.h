// What clients of a lock have done, in a folder that all of them write to, and whether it was right: the
// counter that a token guards, the list of its writes, and the list of holds. Times are true_now_ns().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process.h"

namespace holdfast::integration {

// A write that the storage took, in the order in which it took them.
struct Write {
  uint64_t value = 0;
  uint64_t based_on = 0;  // what the writer had read
  uint64_t token = 0;
};

struct Held {
  uint64_t token = 0;
  int64_t asked_ns = 0;         // before the lock was asked for
  int64_t acquired_ns = 0;      // after it was granted
  int64_t valid_ns = 0;         // the last time at which it was known to be valid; acquired_ns: never
  bool clock_is_right = false;  // of the holder: within the drift that the library allows for
};

struct Span {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
};

// A counter in a file, which refuses whoever comes with a token smaller than the largest that it has seen.
// To read counts as seeing: otherwise a late writer could come between the next holder's read and write.
// Each process has one of its own, on one folder; a process that stands still may keep the others waiting.
class Storage {
 public:
  // Nobody may write beyond `target`.
  Storage(const std::filesystem::path& folder, uint64_t target);

  // As it is now; waits for nobody.
  uint64_t value() const;
  uint64_t target() const { return target_; }
  // Nothing: the token is too old.
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

// What is wrong, in words; empty: nothing.
// Each write is one more than the write before it, knew of that, and has a larger token.
std::vector<std::string> faults_of_writes(const std::vector<Write>& writes, uint64_t final_value);
// No token twice; who asked after another had acquired has a larger one; no two whose clocks are right were
// valid at one moment; nobody asked and acquired within an outage, when no quorum was there.
std::vector<std::string> faults_of_holds(const std::vector<Held>& holds, const std::vector<Span>& outages);

}  // namespace holdfast::integration
