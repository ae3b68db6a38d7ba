// How the command ends: its exit statuses, those of sysexits.h where there is one, and the line that says
// why.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace holdfast {

inline constexpr int kNotHeld = 1;  // unlock, renew: others hold the lock, or nobody does
inline constexpr int kUsage = 64;
inline constexpr int kUnavailable = 69;
inline constexpr int kFailed = 71;  // no processes or descriptors left
inline constexpr int kNoOutput = 74;
inline constexpr int kLost = 76;

template <typename... Args>
int fail(int status, fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(stderr, "holdfast: {}\n", fmt::format(format, std::forward<Args>(args)...));
  return status;
}

}  // namespace holdfast
