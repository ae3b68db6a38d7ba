// glob_match: Redis's glob rules with their oddities, checked by cases and against a plain recursive
// matcher.
#include "core/base/glob.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <utility>

namespace holdfast {
namespace {

using namespace std::string_view_literals;

char fold(char c, bool ignore_case) {
  return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Matches the class behind "[" as Redis's loop does. Returns the rest of the pattern.
std::string_view plain_class(std::string_view p, char c, bool ignore_case, bool& matched) {
  const bool negated = p.starts_with('^');
  if (negated) p.remove_prefix(1);
  matched = false;
  for (;;) {
    if (p.size() >= 2 && p[0] == '\\') {
      matched |= p[1] == c;
      p.remove_prefix(2);
    } else if (p.empty() || p[0] == ']') {
      p.remove_prefix(p.empty() ? 0 : 1);
      break;
    } else if (p.size() >= 3 && p[1] == '-') {
      std::pair<signed char, signed char> ends{p[0], p[2]};
      if (ends.first > ends.second) std::swap(ends.first, ends.second);
      const auto low = static_cast<signed char>(fold(static_cast<char>(ends.first), ignore_case));
      const auto high = static_cast<signed char>(fold(static_cast<char>(ends.second), ignore_case));
      const auto value = static_cast<signed char>(fold(c, ignore_case));
      matched |= low <= value && value <= high;
      p.remove_prefix(3);
    } else {
      matched |= fold(p[0], ignore_case) == fold(c, ignore_case);
      p.remove_prefix(1);
    }
  }
  matched = matched != negated;
  return p;
}

bool plain_rest(std::string_view p, std::string_view t, bool ignore_case) {
  if (p.empty()) return t.empty();
  if (p[0] == '*')
    return plain_rest(p.substr(1), t, ignore_case) ||
           (!t.empty() && plain_rest(p, t.substr(1), ignore_case));
  if (t.empty()) return false;
  if (p[0] == '?') return plain_rest(p.substr(1), t.substr(1), ignore_case);
  if (p[0] == '[') {
    bool matched = false;
    p = plain_class(p.substr(1), t[0], ignore_case, matched);
    return matched && plain_rest(p, t.substr(1), ignore_case);
  }
  if (p[0] == '\\' && p.size() >= 2) p.remove_prefix(1);
  return fold(p[0], ignore_case) == fold(t[0], ignore_case) &&
         plain_rest(p.substr(1), t.substr(1), ignore_case);
}

bool plain_match(std::string_view p, std::string_view t, bool ignore_case) {
  if (t.empty()) return p.empty() || p == "*";
  return plain_rest(p, t, ignore_case);
}

}  // namespace

TEST_CASE("glob_match: literals match only themselves") {
  CHECK(glob_match("", ""));
  CHECK(glob_match("abc", "abc"));
  CHECK_FALSE(glob_match("abc", "ab"));
  CHECK_FALSE(glob_match("abc", "abcd"));
  CHECK_FALSE(glob_match("", "a"));
  CHECK_FALSE(glob_match("abc", "aBc"));
}

TEST_CASE("glob_match: a star matches any run, a question mark one byte") {
  CHECK(glob_match("*", "anything"));
  CHECK(glob_match("a*", "a"));
  CHECK(glob_match("a**", "a"));
  CHECK(glob_match("*c", "abc"));
  CHECK(glob_match("a*b*c", "a--b--b--c"));
  CHECK_FALSE(glob_match("a*b*c", "a--c--b"));
  CHECK(glob_match("h?llo", "hello"));
  CHECK_FALSE(glob_match("h?llo", "hllo"));
  CHECK_FALSE(glob_match("a?", "a"));
  CHECK(glob_match("*?*?", "ab"));
  CHECK_FALSE(glob_match("*?*?", "a"));
}

TEST_CASE("glob_match: an empty text matches only the empty pattern and the single star") {
  CHECK(glob_match("*", ""));
  CHECK_FALSE(glob_match("**", ""));
  CHECK_FALSE(glob_match("?", ""));
}

TEST_CASE("glob_match: classes, ranges and their negation") {
  CHECK(glob_match("h[ae]llo", "hallo"));
  CHECK_FALSE(glob_match("h[ae]llo", "hillo"));
  CHECK(glob_match("h[a-c]llo", "hbllo"));
  CHECK(glob_match("h[c-a]llo", "hbllo"));
  CHECK_FALSE(glob_match("h[a-c]llo", "hdllo"));
  CHECK(glob_match("h[^e]llo", "hallo"));
  CHECK_FALSE(glob_match("h[^e]llo", "hello"));
  CHECK(glob_match("[\\]]", "]"));
  CHECK(glob_match("[\\^a]", "^"));
  CHECK(glob_match("[a^]", "^"));
}

TEST_CASE("glob_match: odd classes have the meaning that Redis gives them") {
  CHECK(glob_match("[abc", "b"));
  CHECK(glob_match("[^", "x"));
  CHECK_FALSE(glob_match("[", "["));
  CHECK_FALSE(glob_match("[]a]", "a"));
  CHECK(glob_match("[a-]", "^"));  // a range from 'a' to ']', and the class continues
  CHECK(glob_match("[\\", "\\"));
}

TEST_CASE("glob_match: a backslash makes the next byte literal, and itself at the end") {
  CHECK(glob_match("a\\*b", "a*b"));
  CHECK_FALSE(glob_match("a\\*b", "axb"));
  CHECK(glob_match("\\[a]", "[a]"));
  CHECK(glob_match("a\\", "a\\"));
  CHECK(glob_match("a\\b", "ab"));
}

TEST_CASE("glob_match: case is ignored where asked, but not for a byte escaped in a class") {
  CHECK(glob_match("MAX*", "maxmemory", true));
  CHECK(glob_match("[A-C]x", "bX", true));
  CHECK(glob_match("\\A", "a", true));
  CHECK_FALSE(glob_match("[\\A]", "a", true));
}

TEST_CASE("glob_match: every byte value is matched") {
  CHECK(glob_match("a\0*"sv, "a\0b"sv));
  CHECK_FALSE(glob_match("a\0c"sv, "a\0b"sv));
  CHECK(glob_match("[\x80-\xff]", "\xc3"));
  CHECK(glob_match("?", "\xff"));
}

TEST_CASE("glob_match: a pattern of many stars takes at most pattern times text steps") {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "a*";
  CHECK_FALSE(glob_match(pattern + "b", std::string(20'000, 'a')));
  CHECK(glob_match(pattern + "b", std::string(20'000, 'a') + "b"));
}

TEST_CASE("glob_match: beyond the allowed steps nothing matches, and the steps are counted") {
  const std::string pattern = "*" + std::string(40, '?') + "b*";
  GlobSteps steps{.allowed = 40'000};
  CHECK(glob_match(pattern, std::string(1'000, 'a') + "b", steps));
  const uint64_t taken = steps.taken;
  CHECK(taken > 25'000);
  CHECK(taken < 40'000);
  CHECK_FALSE(glob_match(pattern, std::string(2'000, 'a') + "b", steps));
  CHECK(steps.taken - taken == 40'000);
  CHECK(glob_match(pattern, std::string(50, 'a') + "b", steps));  // the match before used none of its steps
  GlobSteps classes{.allowed = 2'000};
  CHECK_FALSE(glob_match("*[" + std::string(1'000, 'x') + "a]", std::string(20, 'b') + "a", classes));
}

TEST_CASE("glob_match: without free steps, a long text is read only as far as the allowed steps") {
  const std::string text(1'000'000, 'a');
  for (const std::string pattern : {"*?b", "*[b]", "*\\b", "*a?aaab*", "*aaaaaaaaaab*"}) {
    CAPTURE(pattern);
    GlobSteps steps{.allowed = 1024, .free = 0};
    CHECK_FALSE(glob_match(pattern, text + "ab", steps));
    CHECK(steps.taken == 1024);
  }
}

TEST_CASE("glob_match: the steps counted for a match suffice, one fewer does not") {
  GlobSteps plenty{.allowed = 10'000, .free = 0};
  const std::string pattern = "a?c*[x-z]*end?";
  const std::string text = "abc,no,no,yes,the end.";
  REQUIRE(glob_match(pattern, text, plenty));
  GlobSteps enough{.allowed = plenty.taken, .free = 0};
  CHECK(glob_match(pattern, text, enough));
  GlobSteps few{.allowed = plenty.taken - 1, .free = 0};
  CHECK_FALSE(glob_match(pattern, text, few));
}

TEST_CASE("glob_match: a pattern longer than the remaining steps is not read") {
  GlobSteps steps{.allowed = 1024, .free = 0};
  CHECK(glob_match(std::string(1023, '*') + "a", "a", steps));
  steps.taken = 0;
  CHECK_FALSE(glob_match(std::string(1024, '*') + "a", "a", steps));
  CHECK(steps.taken == 0);
}

TEST_CASE("glob_match: plain bytes behind a star are searched 32 at a step, or compared with the end") {
  const std::string text = std::string(32'000, 'x') + "lock:7";
  GlobSteps steps{.free = 0};
  CHECK(glob_match("*lock:*", text, steps));
  CHECK(steps.taken < 1'020);
  CHECK_FALSE(glob_match("*luck:*", text, steps));
  CHECK(steps.taken < 2'040);
  steps.taken = 0;
  CHECK(glob_match("*:7", text, steps));
  CHECK_FALSE(glob_match("*" + std::string(16'000, 'x') + "8", text, steps));
  CHECK(steps.taken < 520);  // for the pattern's 16,000 bytes
}

TEST_CASE("glob_match: usual patterns use none of the counted steps") {
  GlobSteps steps;
  CHECK(glob_match("job:*:lock:?", "job:12345678:lock:1", steps));
  CHECK(glob_match("*[0-9]*", "order:7:items", steps));
  CHECK_FALSE(glob_match("*:nobody:*", "session:0123456789abcdef:held", steps));
  CHECK(steps.taken == 0);
}

TEST_CASE("glob_match: a plain pattern takes at most as many steps as the text has bytes") {
  GlobSteps none{.allowed = 0};
  CHECK(glob_match("abc?e", "abcde", none));
  CHECK(glob_match("a*", "abcde", none));
  CHECK_FALSE(glob_match("abcdf", "abcde", none));
}

TEST_CASE("glob_match: agrees with a plain recursive matcher on repetitive texts") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50'000; ++round) {
    std::string pattern;
    std::string text;
    for (size_t n = random() % 10; n > 0; --n) pattern += "aab**?"[random() % 6];
    for (size_t n = random() % 16; n > 0; --n) text += "aab"[random() % 3];
    CAPTURE(pattern);
    CAPTURE(text);
    REQUIRE(glob_match(pattern, text) == plain_match(pattern, text, false));
  }
}

TEST_CASE("glob_match: agrees with a plain recursive matcher on random patterns") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::string_view pattern_bytes = "**??[[]]^-\\\\abcABZz\0\x80\xff"sv;
  const std::string_view text_bytes = "abcABZz]^-\\\0\x80\xff"sv;
  for (int round = 0; round < 200'000; ++round) {
    std::string pattern;
    std::string text;
    for (size_t n = random() % 9; n > 0; --n) pattern += pattern_bytes[random() % pattern_bytes.size()];
    for (size_t n = random() % 6; n > 0; --n) text += text_bytes[random() % text_bytes.size()];
    const bool ignore_case = random() % 2 == 0;
    CAPTURE(pattern);
    CAPTURE(text);
    REQUIRE(glob_match(pattern, text, ignore_case) == plain_match(pattern, text, ignore_case));
  }
}

}  // namespace holdfast
