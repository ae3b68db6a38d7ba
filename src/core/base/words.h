// The words of a line of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Blanks are the space, the tab and CR. The result refers to `line`.
std::vector<std::string_view> split_words(std::string_view line);

// Removes the quoting, as Redis does, and writes the words to `text`, which never reallocates as it is no
// longer than the line; `words` refer to it. Returns false if the quotes are unbalanced.
[[nodiscard]] bool split_quoted_words(std::string_view line, std::string& text,
                                      std::vector<std::string_view>& words);

}  // namespace holdfast
