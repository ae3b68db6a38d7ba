// Matches glob patterns without recursion: after a mismatch, only the last `*` takes one byte more. Earlier
// ones need not: the last one can reach every position that they could leave to it. Plain bytes after a `*`
// are found by a search, not tried byte by byte.
#include "core/base/glob.h"

#include <algorithm>
#include <utility>

#include "core/base/parse.h"

namespace holdfast {
namespace {

bool same(char a, char b, bool ignore_case) {
  return ignore_case ? ascii_lower(a) == ascii_lower(b) : a == b;
}

// Redis orders the ends of a range before it folds their case. The folded ends may be out of order, and
// then match nothing.
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

// On entry `at` is behind the `[`, on return behind the class. An escaped byte never folds its case.
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

bool is_plain(char c) { return c != '*' && c != '?' && c != '[' && c != '\\'; }

// Returns the plain bytes at `at`: those that match only themselves.
std::string_view plain_run(std::string_view pattern, size_t at) {
  size_t end = at;
  while (end < pattern.size() && is_plain(pattern[end])) ++end;
  return pattern.substr(at, end - at);
}

// One match: its positions in the pattern and in the text, and the steps that are left.
class Match {
 public:
  Match(std::string_view pattern, std::string_view text, uint64_t steps, bool ignore_case)
      : pattern_(pattern), text_(text), left_(steps), ignore_case_(ignore_case) {}

  bool matches() {
    while (place_ < text_.size()) {
      if (at_ < pattern_.size() && pattern_[at_] == '*') {
        pass_star();
        if (at_ == pattern_.size()) return left_ > 0;
      } else if (step()) {
        ++place_;
        continue;
      } else if (behind_star_ == kNone) {
        return false;
      } else {
        ++star_ends_;
      }
      if (run_is_last()) return text_.size() - star_ends_ >= run_.size() && text_.ends_with(run_);
      if (!go_behind_star()) return false;
    }
    skip_stars();
    return at_ == pattern_.size();
  }

  uint64_t left() const { return left_; }

 private:
  static constexpr size_t kNone = std::string_view::npos;
  static constexpr size_t kAtOnce = 32;  // bytes that the C library searches in about the time of one step

  // Takes steps from the budget. When it is used up, the match ends: all later checks find `left_` to be 0.
  void spend(uint64_t steps) { left_ -= std::min(left_, steps); }

  // Matches one byte of the text with an element that is not `*`.
  bool step() {
    if (at_ == pattern_.size()) return false;
    const size_t from = at_;
    const bool same = match_one(pattern_, at_, text_[place_], ignore_case_);
    spend(at_ - from);
    return same && left_ > 0;
  }

  void skip_stars() {
    while (at_ < pattern_.size() && pattern_[at_] == '*') ++at_;
  }

  void pass_star() {
    const size_t from = at_;
    skip_stars();
    behind_star_ = at_;
    star_ends_ = place_;
    run_ = ignore_case_ ? std::string_view() : plain_run(pattern_, at_);
    spend(at_ - from + run_.size() / kAtOnce);
  }

  // Whether the run ends the pattern. Then it must be at the end of the text.
  bool run_is_last() const {
    return !run_.empty() && behind_star_ + run_.size() == pattern_.size() && left_ > 0;
  }

  // Ends the star at the first position from `star_ends_` on at which its run of plain bytes is found, and
  // continues behind the run. Returns false if there is no such position.
  bool go_behind_star() {
    if (!run_.empty() && !find_run()) return false;
    at_ = behind_star_ + run_.size();
    place_ = star_ends_ + run_.size();
    return left_ > 0;
  }

  bool find_run() {
    while (left_ > 0 && text_.size() - star_ends_ >= run_.size()) {
      const std::string_view room = text_.substr(star_ends_, text_.size() - star_ends_ - run_.size() + 1);
      const size_t passed = std::min(room.find(run_.front()), room.size());
      spend(1 + (passed + run_.size()) / kAtOnce);
      star_ends_ += passed;
      if (passed == room.size()) return false;
      if (text_.substr(star_ends_).starts_with(run_)) return true;
      ++star_ends_;
    }
    return false;
  }

  std::string_view pattern_, text_;
  uint64_t left_;
  bool ignore_case_;
  size_t at_ = 0;
  size_t place_ = 0;
  size_t behind_star_ = kNone;
  size_t star_ends_ = 0;  // the position in the text at which the last star ends
  std::string_view run_;  // the plain bytes behind the last star
};

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case) {
  GlobSteps steps;
  return glob_match(pattern, text, steps, ignore_case);
}

bool glob_match(std::string_view pattern, std::string_view text, GlobSteps& steps, bool ignore_case) {
  constexpr size_t kUsualPattern = 64;
  constexpr size_t kUsualText = 1024;
  if (pattern == "*") return true;
  if (text.empty()) return pattern.empty();
  const uint64_t free =
      steps.free * (std::min(pattern.size(), kUsualPattern) + std::min(text.size(), kUsualText));
  if (pattern.size() > free + steps.allowed) return false;  // so no element is longer than that
  Match match(pattern, text, free + steps.allowed + 1, ignore_case);
  const bool matches = match.matches();
  steps.taken +=
      steps.allowed - std::min(match.left() - std::min(match.left(), uint64_t{1}), steps.allowed);
  return matches;
}

}  // namespace holdfast
