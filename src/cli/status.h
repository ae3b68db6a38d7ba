// The exit statuses of the command, with the numbers of sysexits.h where one fits, and the error line on
// standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/printable.h"

namespace holdfast {

inline constexpr int kNotHeld = 1;  // unlock, renew: other owners hold the lock, or it is free
inline constexpr int kUsage = 64;
inline constexpr int kUnavailable = 69;
inline constexpr int kFailed = 71;  // no process or descriptor could be allocated
inline constexpr int kNoOutput = 74;
inline constexpr int kLost = 76;

// Prints one line on standard error, and returns the status. Never throws, even if standard error is
// closed.
template <typename... Args>
int fail(int status, fmt::format_string<Args...> format, Args&&... args) {
  const std::string line =
      "holdfast: " + safe_line(fmt::format(format, std::forward<Args>(args)...)) + "\n";
  std::fputs(line.c_str(), stderr);
  return status;
}

// Runs a verb after its options are parsed. Returns its exit status, or the status of the exception that it
// threw.
template <typename Verb>
int status_of_verb(std::string_view name, Verb verb) {
  try {
    return verb();
  } catch (const std::invalid_argument& e) {  // from Client and Servers: a bad --servers
    return fail(kUsage, "--servers: {}; see holdfast {} --help", e.what(), name);
  } catch (const std::exception& e) {
    return fail(kFailed, "{}", e.what());
  }
}

}  // namespace holdfast
