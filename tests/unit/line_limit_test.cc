// The limit of the lines that clients can write to the log.
#include "io/os/line_limit.h"

#include <doctest/doctest.h>

#include <string>

namespace holdfast {

TEST_CASE(
    "line limit: the last line of a second is written, one more reports the limit, the rest is counted") {
  using Verdict = LineLimit::Verdict;
  LineLimit limit;
  for (uint64_t i = 0; i < LineLimit::kLines; ++i) REQUIRE(limit.take(5000) == Verdict::kWrite);
  CHECK(limit.take(5999) == Verdict::kWriteNotice);
  CHECK(limit.take(5999) == Verdict::kLeaveOut);
  CHECK(limit.take(6000) == Verdict::kWrite);
  CHECK(limit.take_left_out() == 2);
  CHECK(limit.take_left_out() == 0);
  for (uint64_t i = 1; i < LineLimit::kLines; ++i) REQUIRE(limit.take(6999) == Verdict::kWrite);
  CHECK(limit.take(6999) == Verdict::kWriteNotice);
  CHECK(limit.take(6000 - 1) == Verdict::kWrite);  // the clock went backwards
}

TEST_CASE("line limit: a text is one line of at most its bytes: below, at and above the limit") {
  const std::string longest(LineLimit::kBytes, 'x');
  CHECK(one_line(longest.substr(1)) == longest.substr(1));
  CHECK(one_line(longest) == longest);
  CHECK(one_line(longest + "y") == longest + "... (1 more bytes)");
  CHECK(one_line("a\r\nb\x1b[0m\x7f\xc3\xbc\t") == "a??b?[0m?\xc3\xbc?");
  CHECK(one_line("") == "");
}

}  // namespace holdfast
