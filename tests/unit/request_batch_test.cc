// RequestBatch: it cuts exactly the requests that the parser would give, and leaves all others to it.
#include "core/codec/request_batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/codec/resp.h"

namespace holdfast {
namespace {

using Requests = std::vector<std::vector<std::string>>;

std::string frame(const std::vector<std::string>& request) {
  std::string bytes = "*" + std::to_string(request.size()) + "\r\n";
  for (const std::string& a : request) bytes += "$" + std::to_string(a.size()) + "\r\n" + a + "\r\n";
  return bytes;
}

// Cuts a copy in a block of exactly its size, so that the sanitizer detects a read beyond it. Checks that
// the requests are those of the parser.
Requests cut(const std::string& stream, const Limits& limits = {}) {
  const auto block = std::make_unique<char[]>(stream.size());
  std::ranges::copy(stream, block.get());
  std::string_view rest(block.get(), stream.size());
  RequestBatch batch;
  batch.cut(rest, limits);
  RequestParser parser(limits);
  Requests requests;
  while (!batch.empty()) {
    const size_t before = batch.size();
    const RequestBatch::Taken taken = batch.take();
    CHECK(batch.size() == before - 1);
    REQUIRE(parser.parse(rest) == RequestParser::Status::kRequest);
    CHECK(std::ranges::equal(taken.argv, parser.argv()));
    CHECK(taken.bytes == parser.consumed());
    requests.emplace_back(taken.argv.begin(), taken.argv.end());
    rest.remove_prefix(taken.bytes);
  }
  return requests;
}

}  // namespace

TEST_SUITE("request_batch") {
  TEST_CASE("complete requests, and an incomplete one at every place") {
    const Requests all{{"LOCK", "k", std::string(40, 'o'), "30000"}, {"PING"}, {"GET", ""}};
    std::string stream;
    std::vector<size_t> ends;
    for (const auto& request : all) {
      stream += frame(request);
      ends.push_back(stream.size());
    }
    for (size_t size = 0; size <= stream.size(); ++size) {
      const auto complete = std::ranges::count_if(ends, [&](size_t end) { return end <= size; });
      CHECK(cut(stream.substr(0, size)) == Requests(all.begin(), all.begin() + complete));
    }
  }

  TEST_CASE("another form ends the batch") {
    const std::string ping = frame({"PING"});
    for (const std::string& other :
         {std::string("PING\r\n"), std::string("*0\r\n"), std::string("*-1\r\n"), std::string("\r\n"),
          std::string("*1\r\n:4\r\nPING\r\n"), std::string("*01\r\n$4\r\nPING\r\n")}) {
      CAPTURE(other);
      CHECK(cut(ping + other + ping) == Requests{{"PING"}});
    }
  }

  TEST_CASE("nine arguments, and ten") {
    CHECK(cut(frame(std::vector<std::string>(9, "a"))).size() == 1);
    CHECK(cut(frame(std::vector<std::string>(10, "a"))).empty());
  }

  TEST_CASE("the largest argument, and one byte more") {
    CHECK(cut(frame({"GET", std::string(RequestBatch::kMostBytes, 'k')})).size() == 1);
    CHECK(cut(frame({"GET", std::string(RequestBatch::kMostBytes + 1, 'k')})).empty());
  }

  TEST_CASE("the limits of the server") {
    Limits limits;
    limits.bulk_bytes = 4;
    limits.arguments = 2;
    CHECK(cut(frame({"PING", "aaaa"}), limits).size() == 1);
    CHECK(cut(frame({"PING", "aaaaa"}), limits).empty());
    CHECK(cut(frame({"PING", "a", "a"}), limits).empty());
  }

  TEST_CASE("a full batch, and the next one") {
    std::string stream;
    for (size_t i = 0; i < RequestBatch::kRequests + 1; ++i)
      stream += frame(std::vector<std::string>(9, "a"));
    CHECK(cut(stream).size() == RequestBatch::kRequests);
    RequestBatch batch;
    batch.cut(stream, Limits{});
    static_cast<void>(batch.take());
    batch.cut(frame({"PING"}), Limits{});
    CHECK(batch.size() == 1);
    CHECK(batch.argv(0).size() == 1);
    batch.clear();
    CHECK(batch.empty());
  }
}

}  // namespace holdfast
