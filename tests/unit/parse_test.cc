// Argument helpers: strict numbers, case-insensitive words, and Redis's text for an unknown command.
#include "core/base/parse.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace holdfast {
namespace {

std::string unknown(const std::vector<std::string_view>& argv) { return unknown_command_text(argv); }

const std::string kHead = "ERR unknown command 'foo', with args beginning with: ";

}  // namespace

TEST_CASE("parse_int: accepts every int64 in its one spelling") {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{10}, kLowest, kLowest + 1, kHighest - 1, kHighest}) {
    CHECK(parse_int(std::to_string(value)) == value);
  }
}

TEST_CASE("parse_int: rejects every other spelling") {
  using namespace std::string_view_literals;
  for (const std::string_view text : {""sv,
                                      "-"sv,
                                      "+"sv,
                                      "+5"sv,
                                      "-0"sv,
                                      "00"sv,
                                      "01"sv,
                                      "-01"sv,
                                      " 1"sv,
                                      "1 "sv,
                                      "1\n"sv,
                                      "1\0"sv,
                                      "1.0"sv,
                                      "1e3"sv,
                                      "0x10"sv,
                                      "--1"sv,
                                      "a"sv,
                                      "1a"sv,
                                      "9223372036854775808"sv,
                                      "-9223372036854775809"sv,
                                      "99999999999999999999999"sv}) {
    CAPTURE(text);
    CHECK_FALSE(parse_int(text));
  }
}

TEST_CASE("parse_int_in: accepts numbers below and at its bounds and rejects those beyond") {
  CHECK_FALSE(parse_int_in("0", 1, 9));
  CHECK(parse_int_in("1", 1, 9) == 1);
  CHECK(parse_int_in("5", 1, 9) == 5);
  CHECK(parse_int_in("9", 1, 9) == 9);
  CHECK_FALSE(parse_int_in("10", 1, 9));
  CHECK_FALSE(parse_int_in("x", 1, 9));
}

TEST_CASE("equals_ignore_case: folds only ASCII letters") {
  CHECK(equals_ignore_case("wAiT", "WAIT"));
  CHECK(equals_ignore_case("", ""));
  CHECK_FALSE(equals_ignore_case("WAIT", "WAITS"));
  CHECK_FALSE(equals_ignore_case("WAIT", "WAIX"));
  CHECK_FALSE(equals_ignore_case("[", "{"));
  CHECK_FALSE(equals_ignore_case("@", "`"));
  CHECK_FALSE(equals_ignore_case("\xc4", "\xe4"));
}

TEST_CASE("append_hex: appends two lower-case digits a byte") {
  const std::vector<uint8_t> bytes = {0x00, 0x0f, 0xa0, 0xff};
  std::string text = "id:";
  append_hex(text, bytes);
  CHECK(text == "id:000fa0ff");
}

TEST_CASE("unknown_command_text: quotes the name and the arguments") {
  CHECK(unknown({"foo"}) == kHead);
  CHECK(unknown({"foo", "a", "b"}) == kHead + "'a' 'b' ");
  CHECK(unknown({"", ""}) == "ERR unknown command '', with args beginning with: '' ");
  CHECK(unknown({"foo", "a'b"}) == kHead + "'a'b' ");
}

TEST_CASE("unknown_command_text: shows at most 128 bytes of the name") {
  for (const size_t size : {127U, 128U, 129U}) {
    const std::string name(size, 'f');
    CHECK(unknown({name}) ==
          "ERR unknown command '" + name.substr(0, 128) + "', with args beginning with: ");
  }
}

TEST_CASE("unknown_command_text: stops after 128 bytes of arguments with their quotes") {
  const auto x = [](size_t n) { return std::string(n, 'x'); };
  CHECK(unknown({"foo", x(127), "b"}) == kHead + "'" + x(127) + "' ");
  CHECK(unknown({"foo", x(300), "b"}) == kHead + "'" + x(128) + "' ");
  CHECK(unknown({"foo", x(125), "b", "c"}) == kHead + "'" + x(125) + "' ");
  CHECK(unknown({"foo", x(124), "bb", "c"}) == kHead + "'" + x(124) + "' 'b' ");
}

TEST_CASE("unknown_command_text: shows a name and an argument up to the first NUL, as C prints them") {
  using namespace std::string_view_literals;
  CHECK(unknown({"foo\0bar"sv, "x\0y"sv, "\0"sv, "z"sv}) == kHead + "'x' '' 'z' ");
}

TEST_CASE("parse_float: accepts the numbers of strtold that fill the whole text") {
  CHECK(parse_float("5") == 5);
  CHECK(parse_float("+5") == 5);
  CHECK(parse_float("-.5") == -.5L);
  CHECK(parse_float("5.") == 5);
  CHECK(parse_float("3.0e3") == 3000);
  CHECK(parse_float("0x10") == 16);
  CHECK(parse_float("0") == 0);
  CHECK(parse_float("1e4932") == 1e4932L);
  CHECK(parse_float("1e-4940") == 1e-4940L);  // too small to be exact, and not 0
  CHECK(parse_float("inf") == std::numeric_limits<long double>::infinity());
  CHECK(parse_float("-Infinity") == -std::numeric_limits<long double>::infinity());
  CHECK(parse_float(std::string(5 * 1024 - 1, '0')) == 0);
}

TEST_CASE("parse_float: rejects all other texts") {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, " 5"sv, "5 "sv, "\t5"sv, "5\0"sv, "\0"sv, "5x"sv, "x"sv, "-"sv, "."sv, "1e"sv, "nan"sv,
        "-nan"sv, "1e4933"sv, "-1e5000"sv, "1e-4952"sv}) {
    CAPTURE(text);
    CHECK(!parse_float(text));
  }
  CHECK(!parse_float(std::string(5 * 1024, '0')));
}

TEST_CASE("format_float: writes the number in a readable form") {
  CHECK(format_float(0) == "0");
  CHECK(format_float(-0.0L) == "0");
  CHECK(format_float(10) == "10");
  CHECK(format_float(-100.5L) == "-100.5");
  CHECK(format_float(3.1L) == "3.1");
  CHECK(format_float(0.1L + 0.2L) == "0.3");
  CHECK(format_float(1e-17L) == "0.00000000000000001");
  CHECK(format_float(-1e-18L) == "0");
  CHECK(format_float(1e20L) == "100000000000000000000");
  CHECK(format_float(std::numeric_limits<long double>::max()).size() == 4933);
  CHECK(format_float(std::numeric_limits<long double>::lowest()).size() == 4934);
}

}  // namespace holdfast
