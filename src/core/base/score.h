// The score of a sorted set's member as text, as Redis 7.0 reads and writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// Reads a score like parse_float(), but as a double.
std::optional<double> parse_score(std::string_view text);

// Formats with 17 digits, like "%.17g"; "inf" and "-inf".
std::string format_score(double score);

// Like format_score(), but with all digits of an integer: so ZSCAN shows the scores of a listpack.
std::string format_packed_score(double score);

// The end of a range of scores: "(1.5" excludes 1.5.
struct ScoreBound {
  double score = 0;
  bool excluded = false;
};
// Reads an end of a range. Like Redis, it is less strict than parse_score(): "" is 0, and blanks may stand
// in front.
std::optional<ScoreBound> parse_score_bound(std::string_view text);

}  // namespace holdfast
