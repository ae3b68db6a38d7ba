// How the command ends: its exit statuses, those of sysexits.h where there is one, and the line that says
// why.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
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
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fputs(("holdfast: " + text + "\n").c_str(), stderr);  // never throws, also where nobody can read it
  return status;
}

// Runs a verb whose words have been understood: its status, or that of what it threw.
template <typename Verb>
int status_of_verb(std::string_view name, Verb verb) {
  try {
    return verb();
  } catch (const std::invalid_argument& e) {  // of Client and Servers: what --servers says
    return fail(kUsage, "--servers: {}; see holdfast {} --help", e.what(), name);
  } catch (const std::exception& e) {
    return fail(kFailed, "{}", e.what());
  }
}

}  // namespace holdfast
