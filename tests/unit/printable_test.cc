// Text of servers and users on a terminal.
#include "cli/printable.h"

#include <doctest/doctest.h>

#include <string>

namespace holdfast {
namespace {

TEST_CASE("printable: letters of any language stay, controls and backslashes are escaped") {
  CHECK(printable("job 1") == "job 1");
  CHECK(printable("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92") ==
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92");
  CHECK(printable("\x1b[31m\n\x7f") == "\\x1b[31m\\x0a\\x7f");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("a\\b") == "a\\x5cb");
}

TEST_CASE("printable: a word has no blank and is not empty") {
  CHECK(printable("a b", true) == "a\\x20b");
  CHECK(printable("", true) == "\"\"");
  CHECK(printable("").empty());
}

TEST_CASE("printable: what a terminal could execute although it looks like text") {
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");           // U+009B, CSI
  CHECK(printable("\x9b") == "\\x9b");                    // the same as one byte
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae");  // U+202E, right to left
  CHECK(printable("\xe2\x81\xa6") == "\\xe2\\x81\\xa6");  // U+2066
  CHECK(printable("\xe2\x80\xa9") == "\xe2\x80\xa9");     // U+2029, just before U+202A
  CHECK(printable("\xe2\x80\xaf") == "\xe2\x80\xaf");     // U+202F, just after U+202E
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");             // U+00A0, just after the controls
}

TEST_CASE("printable: bytes that are not UTF-8") {
  CHECK(printable("\xc3") == "\\xc3");                             // cut
  CHECK(printable("\xc3(") == "\\xc3(");                           // no continuation
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong, 2 bytes
  CHECK(printable("\xe0\x9f\xbf") == "\\xe0\\x9f\\xbf");           // overlong, 3 bytes
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  CHECK(printable("\xf4\x8f\xbf\xbf") == "\xf4\x8f\xbf\xbf");      // U+10FFFF
}

TEST_CASE("safe_line: escapes once, and bounds the length") {
  CHECK(safe_line(printable("a\\b\n")) == "a\\x5cb\\x0a");
  CHECK(safe_line("one\ntwo") == "one\\x0atwo");
  CHECK(safe_line("12345", 5) == "12345");
  CHECK(safe_line("123456", 5) == "12345... (1 more bytes)");
}

}  // namespace
}  // namespace holdfast
