// The lines of the log as JSON: bytes of any kind become valid UTF-8.
#include <doctest/doctest.h>

#include <string>

#include "io/os/json_text.h"

namespace holdfast {
namespace {

std::string json(std::string_view bytes) {
  std::string out;
  append_json_string(out, bytes);
  return out;
}

}  // namespace

TEST_CASE("JSON text: ASCII stays, quotation marks, backslashes and control characters are escaped") {
  using namespace std::string_view_literals;
  CHECK(json("") == R"("")");
  CHECK(json("key:1 a/b") == R"("key:1 a/b")");
  CHECK(json(R"(a"b\c)") == R"("a\"b\\c")");
  CHECK(json("a\nb\0c\x1f\x7f"sv) == R"("a\u000ab\u0000c\u001f\u007f")");
}

TEST_CASE("JSON text: valid UTF-8 stays, of 2, 3 and 4 bytes, at the limits of each") {
  for (const std::string text : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                                 "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(json("a" + text + "b") == "\"a" + text + "b\"");
  }
}

TEST_CASE("JSON text: each byte of invalid UTF-8 becomes the text \\xNN") {
  CHECK(json("\xff") == R"("\\xff")");
  CHECK(json("a\x80z") == R"("a\\x80z")");       // a continuation alone
  CHECK(json("\xc0\x80") == R"("\\xc0\\x80")");  // overlong
  CHECK(json("\xc1\xbf") == R"("\\xc1\\xbf")");
  CHECK(json("\xe0\x9f\xbf") == R"("\\xe0\\x9f\\xbf")");
  CHECK(json("\xed\xa0\x80") == R"("\\xed\\xa0\\x80")");  // a surrogate
  CHECK(json("\xf0\x8f\xbf\xbf") == R"("\\xf0\\x8f\\xbf\\xbf")");
  CHECK(json("\xf4\x90\x80\x80") == R"("\\xf4\\x90\\x80\\x80")");  // above U+10FFFF
  CHECK(json("\xe2\x82") == R"("\\xe2\\x82")");                    // the end is missing
  CHECK(json("\xe2\x82z") == R"("\\xe2\\x82z")");
  CHECK(json("\xc2") == R"("\\xc2")");
}

}  // namespace holdfast
