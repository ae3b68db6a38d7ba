// The client's reader of replies: every type in pieces of any size, and rejections before memory is
// allocated.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "client/transport/reply_reader.h"

namespace holdfast::client {
namespace {

std::string text(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull:
      return "nil";
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kStatus:
      return "+" + value.text;
    case Value::Kind::kBulk:
      return "'" + value.text + "'";
    case Value::Kind::kError:
      return "-" + value.text;
    case Value::Kind::kLost:
      return "lost";
    case Value::Kind::kArray:
    case Value::Kind::kPush:
      break;
  }
  std::string all = value.kind == Value::Kind::kPush ? ">[" : "[";
  for (const Value& element : value.elements) all += text(element) + " ";
  return all + "]";
}

// Returns the replies in `bytes`, read in pieces of this size, followed by the error of the rest.
std::string read(std::string_view bytes, size_t piece = std::string_view::npos, ReplyLimits limits = {},
                 Protocol protocol = Protocol::kResp2) {
  ReplyReader reader(protocol, limits);
  std::string all;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    reader.feed(part);
    bytes.remove_prefix(part.size());
    while (const auto value = reader.next()) all += text(*value) + "\n";
  }
  return all + reader.error();
}

TEST_CASE("replies: each type is read, in one piece and byte by byte") {
  const std::string_view bytes =
      "+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n"
      "*3\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n+b\r\n$-1\r\n:9223372036854775807\r\n";
  const std::string expected =
      "+OK\n-ERR no\n-12\n'a\r\n'\n''\nnil\nnil\n[]\n[1 ['a' [+b ] ] nil ]\n9223372036854775807\n";
  for (const size_t piece : {std::string_view::npos, size_t{1}, size_t{2}, size_t{7}})
    CHECK(read(bytes, piece) == expected);
}

TEST_CASE("replies: each type of RESP3 is read, and pushes are known, in one piece and byte by byte") {
  const std::string_view bytes =
      "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n>1\r\n:2\r\n_\r\n>3\r\n$4\r\nlock\r\n$4\r\n>1\r\n\r\n~2\r\n#t\r\n#"
      "f\r\n"
      ",1.5\r\n>0\r\n*0\r\n$-1\r\n*-1\r\n-ERR "
      "no\r\n(12345678901234567890\r\n$0\r\n\r\n>1\r\n%1\r\n:1\r\n*0\r\n:7\r\n";
  const std::string expected =
      "[+a 1 +b [[2 ] nil ] ]\n>['lock' '>1\r\n' [1 0 ] ]\n+1.5\n>[]\n[]\nnil\nnil\n-ERR no\n"
      "+12345678901234567890\n''\n>[[1 [] ] ]\n7\n";
  for (const size_t piece : {std::string_view::npos, size_t{1}, size_t{2}, size_t{7}})
    CHECK(read(bytes, piece, {}, Protocol::kResp3) == expected);
}

TEST_CASE("replies: bytes that are no reply in RESP3 end the reading, with a reason") {
  const auto resp3 = [](std::string_view bytes, ReplyLimits limits = {}) {
    return read(bytes, 1, limits, Protocol::kResp3);
  };
  CHECK(resp3(":1\r\nHTTP/1.1 400\r\n:2\r\n") == "1\nprotocol error, got \"H\" as reply type byte");
  CHECK(resp3("=5\r\ntxt:a\r\n") == "protocol error, got \"=\" as reply type byte");
  CHECK(resp3("*x\r\n") != "");
  CHECK(resp3("%99999999999999999999\r\n") != "");
  CHECK(resp3("$x\r\n") != "");
  CHECK(resp3("%3\r\n", {.elements = 5}) == "the reply has more elements than the limit");
  CHECK(resp3("+123456789", {.line_bytes = 8}) == "protocol error, a line without end");
  CHECK(resp3("$10\r\n0123456789\r\n", {.line_bytes = 8}) == "'0123456789'\n");
}

TEST_CASE("replies: bytes that are no reply end the reading, with a reason") {
  CHECK(read(":1\r\nHTTP/1.1 400\r\n:2\r\n") == "1\nprotocol error, got \"H\" as reply type byte");
  CHECK(read(":x\r\n") != "");
  CHECK(read("*2\r\n:1\r\nx") == "protocol error, got \"x\" as reply type byte");
  ReplyReader reader;
  reader.feed("x");
  CHECK(!reader.next());
  const std::string why = reader.error();
  reader.feed(":1\r\n");
  CHECK(!reader.next());
  CHECK(reader.error() == why);
}

TEST_CASE("replies: more elements than the limit are rejected at their announcement") {
  const std::string refused = "the reply has more elements than the limit";
  CHECK(read("*2147483647\r\n") == refused);
  CHECK(read("*1048577\r\n") == refused);
  CHECK(read("*1048576\r\n") == "");
  CHECK(read("*3\r\n:1\r\n:2\r\n:3\r\n", 1, {.elements = 3}) == "[1 2 3 ]\n");
  CHECK(read("*4\r\n:1\r\n", 1, {.elements = 3}) == refused);
  // The limit covers all arrays of one reply, but not several replies.
  CHECK(read("*2\r\n:0\r\n*1\r\n:1\r\n", 1, {.elements = 3}) == "[0 [1 ] ]\n");
  CHECK(read("*2\r\n:0\r\n*2\r\n:1\r\n", 1, {.elements = 3}) == refused);
  CHECK(read("*2\r\n:0\r\n:1\r\n*2\r\n:0\r\n:1\r\n", 1, {.elements = 3}) == "[0 1 ]\n[0 1 ]\n");
}

TEST_CASE("replies: more bytes than the limit are rejected, announced or sent") {
  const std::string refused = "the reply has more bytes than the limit";
  const ReplyLimits limits{.bytes = 20};
  const std::string bulk = "$14\r\n01234567890123\r\n";
  CHECK(read(bulk, 1, limits) == "'01234567890123'\n");
  CHECK(read("$21\r\n012345678901234567890", 1, limits) == refused);
  CHECK(read("$900\r\n01234567890123456", 1, limits) == refused);
  // The limit covers all texts of one reply, but not several replies.
  CHECK(read("*2\r\n" + bulk + bulk, std::string_view::npos, limits) == refused);
  CHECK(read(bulk + bulk, std::string_view::npos, limits) == "'01234567890123'\n'01234567890123'\n");
}

TEST_CASE("replies: a line without an end is rejected") {
  const std::string refused = "protocol error, a line without end";
  const ReplyLimits limits{.line_bytes = 8};
  CHECK(read("+1234567\r\n", 1, limits) == "+1234567\n");
  CHECK(read("+123456789\r\n", std::string_view::npos, limits) == refused);
  CHECK(read("+123456789", 1, limits) == refused);
  CHECK(read("$000000000000", 1, limits) == refused);
  CHECK(read("$10\r\n0123456789\r\n", 1, limits) == "'0123456789'\n");  // a bulk string is not a line
}

}  // namespace
}  // namespace holdfast::client
