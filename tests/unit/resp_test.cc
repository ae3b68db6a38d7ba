// RequestParser: every form of request, every split, every rejection with its text, every limit.
#include "core/codec/resp.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace holdfast {
namespace {

using Status = RequestParser::Status;
using Request = std::vector<std::string>;

struct Outcome {
  std::vector<Request> requests;
  std::string error;
  size_t unparsed = 0;
  bool operator==(const Outcome&) const = default;
};

Request copy_of(const RequestParser& parser) { return {parser.argv().begin(), parser.argv().end()}; }

// Parses as much as possible of stream[start, end). Each call gets a block of exactly that size, so that
// the sanitizer detects a read beyond it and a view kept from an earlier block.
void parse_until(RequestParser& parser, const std::string& stream, size_t end, size_t& start,
                 Outcome& outcome) {
  for (;;) {
    const size_t size = end - start;
    const auto block = std::make_unique<char[]>(size);
    std::copy_n(stream.data() + start, size, block.get());
    const Status status = parser.parse({block.get(), size});
    if (status == Status::kBroken) outcome.error = parser.error();
    if (status == Status::kMore) REQUIRE(parser.wanted() > size);
    if (status != Status::kRequest) return;
    outcome.requests.push_back(copy_of(parser));
    REQUIRE(parser.consumed() <= size);
    start += parser.consumed();
  }
}

// Feeds the stream in pieces that end at `cuts` (in order) and at its end.
Outcome feed(const std::string& stream, std::vector<size_t> cuts = {}, const Limits& limits = {}) {
  RequestParser parser(limits);
  Outcome outcome;
  size_t start = 0;
  cuts.push_back(stream.size());
  for (const size_t cut : cuts) {
    parse_until(parser, stream, cut, start, outcome);
    if (!outcome.error.empty()) return outcome;
  }
  outcome.unparsed = stream.size() - start;
  return outcome;
}

std::vector<size_t> every_byte(const std::string& stream) {
  std::vector<size_t> cuts;
  for (size_t i = 0; i < stream.size(); ++i) cuts.push_back(i);
  return cuts;
}

std::string frame(const Request& request) {
  std::string bytes = "*" + std::to_string(request.size()) + "\r\n";
  for (const std::string& a : request) bytes += "$" + std::to_string(a.size()) + "\r\n" + a + "\r\n";
  return bytes;
}

// Returns the only request in `stream`; fails the test if there is not exactly one.
Request only(const std::string& stream) {
  const Outcome outcome = feed(stream);
  CAPTURE(stream);
  REQUIRE(outcome.error.empty());
  REQUIRE(outcome.requests.size() == 1);
  CHECK(outcome.unparsed == 0);
  return outcome.requests[0];
}

// Returns the error of the stream, which must not depend on how it is split.
std::string error_of(const std::string& stream, const Limits& limits = {}) {
  const Outcome whole = feed(stream, {}, limits);
  CHECK(feed(stream, every_byte(stream), limits) == whole);
  return whole.error;
}

const std::string kNul(1, '\0');

}  // namespace

TEST_CASE("RequestParser: a frame's arguments are views into the caller's bytes") {
  const std::string bytes = frame({"LOCK", "k", "alice", "30000"});
  const Limits limits;
  RequestParser parser(limits);
  REQUIRE(parser.parse(bytes) == Status::kRequest);
  CHECK(parser.consumed() == bytes.size());
  CHECK(copy_of(parser) == Request{"LOCK", "k", "alice", "30000"});
  for (const std::string_view argument : parser.argv()) {
    CHECK(argument.data() > bytes.data());
    CHECK(argument.data() + argument.size() < bytes.data() + bytes.size());
  }
}

TEST_CASE("RequestParser: pipelined requests of both kinds are returned in order, one a call") {
  const std::string stream = frame({"A", "1"}) + "b  2\r\n" + frame({"C"}) + "\nd\n" + frame({"E", ""});
  const std::vector<Request> expected = {{"A", "1"}, {"b", "2"}, {"C"}, {}, {"d"}, {"E", ""}};
  CHECK(feed(stream).requests == expected);
}

TEST_CASE("RequestParser: a stream split at any byte, or at all of them, gives the same requests") {
  const std::string stream = frame({"SET", "k", "a\r\nb"}) + "GET \"a b\" 'c'\r\n" +
                             frame({"X", "", kNul}) + "*0\r\n" +
                             frame({"0123456789ab", std::string(120, 'v')}) + "\r\nPING\n";
  const Outcome whole = feed(stream);
  REQUIRE(whole.requests.size() == 7);
  CHECK(whole.unparsed == 0);
  CHECK(feed(stream, every_byte(stream)) == whole);
  for (size_t i = 0; i <= stream.size(); ++i) {
    for (size_t j = i; j <= stream.size(); j += 5) REQUIRE(feed(stream, {i, j}) == whole);
  }
}

TEST_CASE("RequestParser: every prefix of a frame needs more bytes, and never more than the frame") {
  const std::string bytes = frame({"SET", "key", std::string(300, 'x')});
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Limits limits;
    RequestParser parser(limits);
    REQUIRE(parser.parse(std::string_view(bytes).substr(0, size)) == Status::kMore);
    REQUIRE(parser.wanted() > size);
    REQUIRE(parser.wanted() <= bytes.size());
  }
}

TEST_CASE("RequestParser: arguments hold any byte") {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  CHECK(only(frame({"ECHO", all, "*1\r\n$1\r\n"})) == Request{"ECHO", all, "*1\r\n$1\r\n"});
}

TEST_CASE("RequestParser: a count of zero or below is an empty request") {
  for (const char* bytes : {"*0\r\n", "*-1\r\n", "*-9223372036854775808\r\n", "\r\n", "\n", "  \t\r\n"}) {
    CHECK(only(bytes).empty());
  }
}

TEST_CASE("RequestParser: as in Redis, it ignores the byte behind a CR and behind an argument") {
  CHECK(only("*1\rX$4\rYPINGzz") == Request{"PING"});
}

TEST_CASE("RequestParser: lengths that are no strict integers of Redis are a protocol error") {
  for (const char* n : {"+1", "01", " 1", "1 ", "-0", "", "-", "1e3", "0x1", "\n1", "9223372036854775808",
                        "18446744073709551617", "99999999999999999999999"}) {
    CAPTURE(n);
    CHECK(error_of("*" + std::string(n) + "\r\n") == "invalid multibulk length");
    CHECK(error_of("*1\r\n$" + std::string(n) + "\r\n") == "invalid bulk length");
  }
  CHECK(error_of("*1" + kNul + "\r\n") == "invalid multibulk length");
  CHECK(error_of("*1\r\n$-1\r\n") == "invalid bulk length");
  CHECK(error_of("*2\r\n$1\r\na\r\n$-9223372036854775808\r\n") == "invalid bulk length");
}

TEST_CASE("RequestParser: a byte that stands for an argument's $ is named once its line is complete") {
  CHECK(error_of("*1\r\nfoo\r\n") == "expected '$', got 'f'");
  CHECK(error_of("*1\r\n*1\r\n") == "expected '$', got '*'");
  CHECK(error_of("*2\r\n$1\r\na\r\n:1\r\n") == "expected '$', got ':'");
  CHECK(error_of("*1\r\n\r\n") == "expected '$', got ' '");
  CHECK(error_of("*1\r\n\n\r\n") == "expected '$', got ' '");
  CHECK(error_of("*1\r\n" + kNul + "\r\n") == "expected '$', got ' '");
  CHECK(error_of("*1\r\n\xff\r\n") == "expected '$', got '\xff'");
  CHECK(feed("*1\r\nfoo").error.empty());
}

TEST_CASE("RequestParser: after a protocol error each call returns the same error") {
  const Limits limits;
  RequestParser parser(limits);
  REQUIRE(parser.parse("*x\r\n") == Status::kBroken);
  CHECK(parser.parse(frame({"PING"})) == Status::kBroken);
  CHECK(parser.error() == "invalid multibulk length");
  CHECK(parser.argv().empty());
}

TEST_CASE("RequestParser: requests before a broken one are returned") {
  const Outcome outcome = feed(frame({"A"}) + "*1\r\n$x\r\n");
  CHECK(outcome.requests == std::vector<Request>{{"A"}});
  CHECK(outcome.error == "invalid bulk length");
}

TEST_CASE("RequestParser: inline words are unquoted as by sdssplitargs") {
  CHECK(only("PING\r\n") == Request{"PING"});
  CHECK(only("  set \t k  v \r\n") == Request{"set", "k", "v"});
  CHECK(only("e \"a\\x41\\n\\r\\t\\b\\a\\\\\\q\\\"\"\n") == Request{"e", "aA\n\r\t\b\a\\q\""});
  CHECK(only("e \"\\x4\" \"\\xzz\" \"\\xFf\"\n") == Request{"e", "x4", "xzz", "\xff"});
  CHECK(only("e 'a\\'b\\n\"'\n") == Request{"e", "a'b\\n\""});
  CHECK(only("e a\"b c\" d'e f'\n") == Request{"e", "ab c", "de f"});
  CHECK(only("e \"\" ''\n") == Request{"e", "", ""});
  CHECK(only("e a\\nb\n") == Request{"e", "a\\nb"});
  CHECK(only("e \v\fb\n") == Request{"e", "b"});
  CHECK(only("e a\vb \"c\"\vd\n") == Request{"e", "a\vb", "c", "d"});
  CHECK(only("a\rb\r\r\n") == Request{"a", "b"});
  CHECK(only("a" + kNul + "b\n") == Request{"a" + kNul + "b"});
}

TEST_CASE("RequestParser: unbalanced quotes are a protocol error") {
  for (const char* line :
       {"e \"a", "e 'a", "e \"a\"b", "e 'a'b", "e \"a\\", "e \"a\\\"", "e 'a\\'", "\"", "a'", "\"a\"'b'"}) {
    CAPTURE(line);
    CHECK(error_of(std::string(line) + "\r\n") == "unbalanced quotes in request");
  }
}

TEST_CASE("RequestParser: the limit of an inline line applies below, at and above it") {
  Limits limits;
  limits.inline_bytes = 16;
  for (const size_t size : {15U, 16U}) {
    const std::string word(size, 'x');
    CHECK(feed(word + "\n", {}, limits).requests == std::vector<Request>{{word}});
    CHECK(error_of(word, limits).empty());
  }
  CHECK(error_of(std::string(17, 'x'), limits) == "too big inline request");
  CHECK(error_of(std::string(17, 'x') + "\n", limits) == "too big inline request");
  CHECK(error_of(std::string(16, 'x') + "\r\n", limits) == "too big inline request");
}

TEST_CASE("RequestParser: the limit of a frame's length line applies below, at and above it") {
  Limits limits;
  limits.inline_bytes = 16;
  for (const size_t size : {15U, 16U}) {
    CHECK(error_of("*" + std::string(size - 1, '1'), limits).empty());
    CHECK(error_of("*" + std::string(size - 1, '1') + "\r\n", limits) == "invalid multibulk length");
    CHECK(error_of("*1\r\n$" + std::string(size - 1, '1'), limits).empty());
    CHECK(error_of("*1\r\n$" + std::string(size - 1, '1') + "\r\n", limits) == "invalid bulk length");
  }
  CHECK(error_of("*" + std::string(16, '1'), limits) == "too big mbulk count string");
  CHECK(error_of("*" + std::string(16, '1') + "\r\n", limits) == "too big mbulk count string");
  CHECK(error_of("*1\r\n$" + std::string(16, '1'), limits) == "too big bulk count string");
  CHECK(error_of("*2\r\n$1\r\na\r\n$" + std::string(16, '1') + "\r\n", limits) ==
        "too big bulk count string");
}

TEST_CASE("RequestParser: the limit of arguments applies below, at and above it") {
  Limits limits;
  limits.arguments = 3;
  CHECK(feed(frame({"a", "b"}), {}, limits).requests.size() == 1);
  CHECK(feed(frame({"a", "b", "c"}), {}, limits).requests.size() == 1);
  CHECK(error_of("*4\r\n", limits) == "invalid multibulk length");
  CHECK(feed("a b\n", {}, limits).requests.size() == 1);
  CHECK(feed("a b c\n", {}, limits).requests.size() == 1);
  CHECK(error_of("a b c d\n", limits) == "too big inline request");
  CHECK(feed("*1048576\r\n").error.empty());
  CHECK(feed("*1048577\r\n").error == "invalid multibulk length");
}

TEST_CASE("RequestParser: the limit of an argument's size applies below, at and above it") {
  Limits limits;
  limits.bulk_bytes = 100;
  CHECK(feed(frame({std::string(99, 'x')}), {}, limits).requests.size() == 1);
  CHECK(feed(frame({std::string(100, 'x')}), {}, limits).requests.size() == 1);
  CHECK(error_of(frame({std::string(101, 'x')}), limits) == "invalid bulk length");
  CHECK(feed("*1\r\n$536870912\r\n").error.empty());
  CHECK(feed("*1\r\n$536870913\r\n").error == "invalid bulk length");
}

TEST_CASE("RequestParser: a large argument reports at once how many bytes it needs") {
  const std::string large(9'000'000, 'L');
  const std::string bytes = frame({"SET", "k", large});
  const std::string_view view = bytes;
  const Limits limits;
  RequestParser parser(limits);
  REQUIRE(parser.parse(view.substr(0, 100)) == Status::kMore);
  CHECK(parser.wanted() == bytes.size());
  REQUIRE(parser.parse(view.substr(0, bytes.size() - 1)) == Status::kMore);
  REQUIRE(parser.parse(view) == Status::kRequest);
  REQUIRE(parser.argv().size() == 3);
  CHECK(parser.argv()[2] == large);
}

TEST_CASE("RequestParser: a request of very many arguments may arrive in small pieces") {
  Request request;
  for (int i = 0; i < 100'000; ++i) request.push_back(std::to_string(i));
  const std::string bytes = frame(request);
  const Limits limits;
  RequestParser parser(limits);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    REQUIRE(parser.parse(std::string_view(bytes).substr(0, size)) == Status::kMore);
  }
  REQUIRE(parser.parse(bytes) == Status::kRequest);
  CHECK(copy_of(parser) == request);
  CHECK(parser.parse({}) == Status::kMore);
  const std::string next = frame({"PING"});
  REQUIRE(parser.parse(next) == Status::kRequest);
  CHECK(copy_of(parser) == Request{"PING"});
}

TEST_CASE("RequestParser: random bytes never crash it, and the result never depends on the splits") {
  const uint64_t seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::string alphabet = "**$$$\r\r\n\n\r\n0111234 \"'\\xa-" + kNul + "\xff";
  const std::vector<std::string> pieces = {"*1\r\n", "*2\r\n", "$1\r\n",
                                           "$4\r\n", "\r\n",   "*3\r\n$1\r\na\r\n"};
  Limits limits;
  limits.inline_bytes = 24;
  limits.bulk_bytes = 40;
  for (int round = 0; round < 20'000; ++round) {
    std::string stream;
    for (size_t n = random() % 30; n > 0; --n) {
      if (random() % 3 == 0) stream += pieces[random() % pieces.size()];
      stream += random() % 20 == 0 ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
    }
    std::vector<size_t> cuts;
    for (size_t i = 0; i < stream.size(); ++i) {
      if (random() % 3 == 0) cuts.push_back(i);
    }
    const Outcome whole = feed(stream, {}, limits);
    CAPTURE(stream);
    REQUIRE(feed(stream, cuts, limits) == whole);
    REQUIRE(feed(stream, every_byte(stream), limits) == whole);
  }
}

}  // namespace holdfast
