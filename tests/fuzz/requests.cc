// The parser of requests: a stream gives the same requests and the same end for every split into pieces,
// also when the bytes move in the meantime. The batch gives the same requests.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/codec/request_batch.h"
#include "core/codec/resp.h"
#include "fuzz/targets.h"

namespace holdfast::fuzz {
namespace {

using Status = RequestParser::Status;

// The result of a stream.
struct Heard {
  std::vector<std::vector<std::string>> requests;
  std::vector<size_t> ends;  // the end of each request
  std::string error;
  bool operator==(const Heard&) const = default;
};

// The bytes at the end of a memory block, so that the sanitizer detects a read behind them.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : size_(bytes.size()), bytes_(new char[bytes.size()]) {
    std::ranges::copy(bytes, bytes_.get());
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<char[]> bytes_;
};

Limits limits_of(uint8_t mode) {
  Limits limits;
  if (mode % 2 != 0) return limits;
  limits.bulk_bytes = 40;
  limits.arguments = 5;
  limits.inline_bytes = 24;
  return limits;
}

// The size of each piece, from few bytes to many, by a generator that the first byte seeds.
class Pieces {
 public:
  explicit Pieces(uint8_t seed) : state_(seed) {}
  size_t next() {
    state_ = state_ * 1103515245U + 12345U;
    const size_t longest = (state_ >> 28U) < 12 ? 4 : 64;
    return 1 + (state_ >> 16U) % longest;
  }

 private:
  uint32_t state_;
};

Heard hear(std::string_view stream, const Limits& limits, Pieces* pieces) {
  Heard heard;
  RequestParser parser(limits);
  size_t begin = 0;  // of the request
  size_t end = 0;    // of the received bytes
  while (end < stream.size()) {
    end = pieces == nullptr ? stream.size() : std::min(stream.size(), end + pieces->next());
    for (;;) {
      const Exact bytes(stream.substr(begin, end - begin));
      const Status status = parser.parse(bytes.view());
      if (status == Status::kBroken) {
        heard.error = parser.error();
        must(!heard.error.empty(), "an error says why");
        must(parser.parse(bytes.view()) == Status::kBroken, "a broken stream stays broken");
        return heard;
      }
      if (status == Status::kMore) {
        must(parser.wanted() > bytes.view().size(), "more is wanted where more is needed");
        break;
      }
      must(parser.consumed() > 0 && parser.consumed() <= bytes.view().size(), "a request is of its bytes");
      must(parser.argv().size() <= limits.arguments, "the limit of arguments");
      heard.requests.emplace_back(parser.argv().begin(), parser.argv().end());
      begin += parser.consumed();
      heard.ends.push_back(begin);
      if (begin == end) {
        parser.parse({});
        break;
      }
    }
  }
  return heard;
}

// The requests that a batch cuts are the first ones of the parser.
void cut(std::string_view stream, const Limits& limits, const Heard& whole) {
  const Exact bytes(stream);
  RequestBatch batch;
  batch.cut(bytes.view(), limits);
  size_t end = 0;
  for (size_t i = 0; !batch.empty(); ++i) {
    const RequestBatch::Taken taken = batch.take();
    must(i < whole.requests.size() && std::ranges::equal(taken.argv, whole.requests[i]),
         "the same request");
    must((end += taken.bytes) == whole.ends[i], "of the same size");
  }
}

}  // namespace

void fuzz_requests(std::string_view bytes) {
  Source source(bytes);
  const uint8_t mode = source.byte();
  const Limits limits = limits_of(mode);
  const Heard whole = hear(source.rest(), limits, nullptr);
  cut(source.rest(), limits, whole);
  Pieces pieces(mode);
  must(hear(source.rest(), limits, &pieces) == whole, "pieces give what the whole gives");
}

}  // namespace holdfast::fuzz
