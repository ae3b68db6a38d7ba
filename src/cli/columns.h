// Text in the columns of a terminal: wide characters take two, combining characters none. The texts are
// UTF-8 without control characters: see printable().
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Makes the C library's tables of characters those of UTF-8. Call it once, before the functions below.
void use_utf8();

size_t width_of(std::string_view text);
// Returns the text with exactly this width: padded with blanks, or cut with a "…" at its end.
std::string fit(std::string_view text, size_t width, bool to_the_right = false);
// Returns the text without its first `columns`.
std::string without_first(std::string_view text, size_t columns);
// Returns lines of at most this width, cut at blanks where possible. A line never begins with a blank.
std::vector<std::string> wrap(std::string_view text, size_t width);

}  // namespace holdfast
