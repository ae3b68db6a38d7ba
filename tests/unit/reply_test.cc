// Reply: the exact bytes of every form in both protocols.
#include "core/codec/reply.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace holdfast {
namespace {

// Returns the bytes that `write` appends to a new buffer.
template <typename Write>
std::string written(int protocol, Write write) {
  Buffer buffer;
  Reply reply(buffer, protocol);
  write(reply);
  return std::string(buffer.view());
}

// Checks one form in RESP2 and in RESP3.
template <typename Write>
void check_forms(std::string_view resp2, std::string_view resp3, Write write) {
  CHECK(written(2, write) == resp2);
  CHECK(written(3, write) == resp3);
}

}  // namespace

TEST_CASE("Reply: forms that both protocols share") {
  for (const int protocol : {2, 3}) {
    CHECK(written(protocol, [](Reply& r) { r.ok(); }) == "+OK\r\n");
    CHECK(written(protocol, [](Reply& r) { r.simple("QUEUED"); }) == "+QUEUED\r\n");
    CHECK(written(protocol, [](Reply& r) { r.simple(""); }) == "+\r\n");
    CHECK(written(protocol, [](Reply& r) { r.array(0); }) == "*0\r\n");
    CHECK(written(protocol, [](Reply& r) { r.array(1048576); }) == "*1048576\r\n");
    CHECK(written(protocol, [](Reply& r) { r.error("ERR no"); }) == "-ERR no\r\n");
  }
}

TEST_CASE("Reply: forms that differ between the protocols") {
  check_forms("$-1\r\n", "_\r\n", [](Reply& r) { r.null(); });
  check_forms("*-1\r\n", "_\r\n", [](Reply& r) { r.null_array(); });
  check_forms(":1\r\n", "#t\r\n", [](Reply& r) { r.boolean(true); });
  check_forms(":0\r\n", "#f\r\n", [](Reply& r) { r.boolean(false); });
  check_forms("*6\r\n", "%3\r\n", [](Reply& r) { r.map(3); });
  check_forms("*3\r\n", "~3\r\n", [](Reply& r) { r.set(3); });
  check_forms("*3\r\n", ">3\r\n", [](Reply& r) { r.push(3); });
  check_forms("$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n", [](Reply& r) { r.verbatim("hi"); });
  check_forms("$0\r\n\r\n", "=4\r\ntxt:\r\n", [](Reply& r) { r.verbatim(""); });
}

TEST_CASE("Reply: integers of every size") {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{9}, int64_t{10}, kLowest, kHighest}) {
    const std::string digits = std::to_string(value);
    CHECK(written(2, [&](Reply& r) { r.integer(value); }) == ":" + digits + "\r\n");
    CHECK(written(2, [&](Reply& r) { r.bulk_integer(value); }) ==
          "$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n");
  }
}

TEST_CASE("Reply: bulk strings hold any bytes, of any length, also 0") {
  const std::string binary("a\r\n\0\xff", 5);
  CHECK(written(2, [&](Reply& r) { r.bulk(binary); }) == "$5\r\n" + binary + "\r\n");
  CHECK(written(2, [](Reply& r) { r.bulk({}); }) == "$0\r\n\r\n");
  const std::string large(1 << 20, 'x');
  CHECK(written(2, [&](Reply& r) { r.bulk(large); }) == "$1048576\r\n" + large + "\r\n");
}

TEST_CASE("Reply: an error is one line, whatever text it quotes") {
  CHECK(written(2, [](Reply& r) { r.error("ERR a\r\nb\n"); }) == "-ERR a  b \r\n");
  CHECK(written(2, [](Reply& r) { r.error("\r\n"); }) == "-  \r\n");
  CHECK(written(2, [](Reply& r) { r.error(""); }) == "-\r\n");
}

TEST_CASE("Reply: the length of an error is limited") {
  constexpr size_t kMost = Reply::kMaxErrorBytes;
  for (const size_t size : {kMost - 1, kMost, kMost + 1, 10 * kMost}) {
    const std::string shown(size < kMost ? size : kMost, 'e');
    CHECK(written(2, [&](Reply& r) { r.error(std::string(size, 'e')); }) == "-" + shown + "\r\n");
  }
}

TEST_CASE("Reply: replies follow one another in the buffer, and an error keeps those before it") {
  const std::string all = written(2, [](Reply& r) {
    r.array(2);
    r.bulk("a\r\nb");
    r.integer(7);
    r.error("ERR x\ny");
    r.null();
  });
  CHECK(all == "*2\r\n$4\r\na\r\nb\r\n:7\r\n-ERR x y\r\n$-1\r\n");
}

}  // namespace holdfast
