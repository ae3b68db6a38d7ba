// Standard output, which may be full or closed: writing never throws, and what fails is told once. And
// whether standard error takes a line.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace holdfast {

// Nothing is told of a failure before flush().
void put(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  put(fmt::format(format, std::forward<Args>(args)...));
}

// Writes out what was put. False: something could not be written, now or before, and standard error says
// why.
bool flush();

// Whether a line on standard error would not have to wait for its reader. The client's thread asks before
// it writes one: while it waits, the lock's time passes by.
bool can_tell();

}  // namespace holdfast
