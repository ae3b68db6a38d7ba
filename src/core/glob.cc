// Matches glob patterns without recursion: where a byte does not match, only the last `*` passed takes one
// byte more. Earlier ones need not, for whatever they could leave to it, it can reach itself.
#include "core/glob.h"

#include <algorithm>
#include <utility>

#include "core/parse.h"

namespace holdfast {
namespace {

bool same(char a, char b, bool ignore_case) {
  return ignore_case ? ascii_lower(a) == ascii_lower(b) : a == b;
}

// Redis puts the ends in order before it folds their case; folded ends may be in disorder and then match
// nothing.
bool in_range(char first, char last, char c, bool ignore_case) {
  auto low = static_cast<signed char>(first);
  auto high = static_cast<signed char>(last);
  if (low > high) std::swap(low, high);
  auto value = static_cast<signed char>(c);
  if (ignore_case) {
    low = static_cast<signed char>(ascii_lower(static_cast<char>(low)));
    high = static_cast<signed char>(ascii_lower(static_cast<char>(high)));
    value = static_cast<signed char>(ascii_lower(c));
  }
  return low <= value && value <= high;
}

// `at` stands behind the `[`, and after the call behind the class. An escaped byte never folds its case.
bool match_class(std::string_view pattern, size_t& at, char c, bool ignore_case) {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    const size_t left = pattern.size() - at;
    if (left >= 2 && pattern[at] == '\\') {
      found |= pattern[at + 1] == c;
      at += 2;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      found |= in_range(pattern[at], pattern[at + 2], c, ignore_case);
      at += 3;
    } else {
      found |= same(pattern[at], c, ignore_case);
      ++at;
    }
  }
  if (at < pattern.size()) ++at;
  return found != negated;
}

// Matches one byte with the element at `at`, which is not `*`, and moves `at` behind it.
bool match_one(std::string_view pattern, size_t& at, char c, bool ignore_case) {
  const char element = pattern[at++];
  if (element == '?') return true;
  if (element == '[') return match_class(pattern, at, c, ignore_case);
  if (element == '\\' && at < pattern.size()) return same(pattern[at++], c, ignore_case);
  return same(element, c, ignore_case);
}

void skip_stars(std::string_view pattern, size_t& at) {
  while (at < pattern.size() && pattern[at] == '*') ++at;
}

// `left`: of the steps that it may take.
bool match_within(std::string_view pattern, std::string_view text, uint64_t& left, bool ignore_case) {
  if (pattern == "*") return true;
  if (text.empty()) return pattern.empty();
  constexpr size_t kNone = std::string_view::npos;
  size_t at = 0;
  size_t place = 0;
  size_t behind_star = kNone;
  size_t star_ends = 0;  // where in the text the last star's run ends
  while (place < text.size()) {
    const size_t from = at;
    const bool is_star = at < pattern.size() && pattern[at] == '*';
    if (is_star) skip_stars(pattern, at);
    const bool matches =
        !is_star && at < pattern.size() && match_one(pattern, at, text[place], ignore_case);
    if (at - from > left) return left = 0, false;
    left -= at - from;
    if (is_star) {
      if (at == pattern.size()) return true;
      behind_star = at;
      star_ends = place;
    } else if (matches) {
      ++place;
    } else if (behind_star != kNone) {
      at = behind_star;
      place = ++star_ends;
    } else {
      return false;
    }
  }
  skip_stars(pattern, at);
  return at == pattern.size();
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case) {
  GlobSteps steps;
  return glob_match(pattern, text, steps, ignore_case);
}

bool glob_match(std::string_view pattern, std::string_view text, GlobSteps& steps, bool ignore_case) {
  constexpr uint64_t kStepsAByte = 8;
  uint64_t left = kStepsAByte * (pattern.size() + text.size()) + steps.allowed;
  const bool matches = match_within(pattern, text, left, ignore_case);
  steps.taken += steps.allowed - std::min(left, steps.allowed);
  return matches;
}

}  // namespace holdfast
