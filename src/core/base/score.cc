// Scores by strtod(), whose forms Redis accepts: decimal, hexadecimal, "inf", "infinity".
#include "core/base/score.h"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace holdfast {

namespace {

// The most digits of a text that is surely an integer which a double holds exactly.
constexpr size_t kExactDigits = 15;

// Reads a short decimal integer, like most scores, without strtod(). Returns nullopt for all other texts.
std::optional<double> parse_short_integer(std::string_view text) {
  if (text.empty() || text.size() > kExactDigits) return std::nullopt;
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text == "-0" || n == 0)
    return std::nullopt;
  return static_cast<double>(n);
}

// A range's end is the text up to its first NUL.
std::optional<double> parse_with_blanks(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (*end != '\0' || std::isnan(value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_score(std::string_view text) {
  if (const auto n = parse_short_integer(text)) return n;
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

std::optional<ScoreBound> parse_score_bound(std::string_view text) {
  ScoreBound bound;
  bound.excluded = text.starts_with('(');
  if (bound.excluded) text.remove_prefix(1);
  auto score = parse_short_integer(text);
  if (!score) score = parse_with_blanks(text);
  if (!score) return std::nullopt;
  bound.score = *score;
  return bound;
}

std::string format_packed_score(double score) {
  constexpr double kMost = 0x1p62;
  const bool integer = std::fabs(score) <= kMost && score == std::trunc(score);
  return integer ? std::to_string(static_cast<int64_t>(score)) : format_score(score);
}

std::string format_score(double score) {
  if (std::isinf(score)) return score > 0 ? "inf" : "-inf";
  char text[32];
  if (score == std::trunc(score) && std::fabs(score) < 1e15 && (score != 0 || !std::signbit(score))) {
    return {text, std::to_chars(text, text + sizeof text, static_cast<int64_t>(score)).ptr};
  }
  return {text, static_cast<size_t>(std::snprintf(text, sizeof text, "%.17g", score))};
}

}  // namespace holdfast
