// Writes to standard output, which may be full or closed: never throws, and reports the first failure once.
// Also tells whether standard error accepts a line.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace holdfast {

// Writes to the buffer of standard output. flush() reports a failure.
void put(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  put(fmt::format(format, std::forward<Args>(args)...));
}

// Flushes the buffer. Returns false if this or an earlier write failed; standard error has the reason.
bool flush();

// Whether standard error accepts a line without blocking. The client's thread checks this before it writes:
// a blocked thread cannot renew the lock.
bool can_write_error();

}  // namespace holdfast
