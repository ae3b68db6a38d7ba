// Splits a line into words; see words.h.
#include "core/base/words.h"

#include <algorithm>

namespace holdfast {

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(kBlanks)));
    line.remove_prefix(words.back().size());
  }
}

}  // namespace holdfast
