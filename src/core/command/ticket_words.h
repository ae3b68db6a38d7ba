// Tells a LOCK by ticket from others before its handler reads the options.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "core/base/parse.h"

namespace holdfast {

// Whether the arguments of a LOCK have the option TICKET. It may be the value of another option, too.
inline bool asks_by_ticket(std::span<const std::string_view> argv) {
  constexpr std::string_view kWithValue[] = {"WAIT", "LIMIT", "DELAY", "TOKEN",
                                             "NOTE", "HAS",   "SEEN",  "OVER"};
  for (size_t i = 4; i < argv.size(); ++i) {
    if (equals_ignore_case(argv[i], "TICKET")) return true;
    const auto is_word = [&](std::string_view word) { return equals_ignore_case(argv[i], word); };
    if (std::ranges::any_of(kWithValue, is_word)) ++i;
  }
  return false;
}

}  // namespace holdfast
