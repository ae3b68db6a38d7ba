// How long an acquisition waits for its lock.
#pragma once

#include <chrono>
#include <optional>

namespace holdfast {

struct WaitLimit {
  bool waits = false;                                // false: one attempt
  std::optional<std::chrono::milliseconds> at_most;  // more than 0; nullopt: no limit

  static WaitLimit none() { return {}; }
  static WaitLimit unlimited() { return {true, std::nullopt}; }
  // Of 0 or less: none.
  static WaitLimit of(std::chrono::milliseconds wait) {
    return wait.count() > 0 ? WaitLimit{true, wait} : none();
  }
};

}  // namespace holdfast
