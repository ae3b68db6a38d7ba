// The words of a line of text.
#pragma once

#include <string_view>
#include <vector>

namespace holdfast {

// Blanks are the space, the tab and CR. The result refers to `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace holdfast
