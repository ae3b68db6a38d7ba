// Cuts a stream of bytes into requests (RESP arrays of bulk strings, or inline commands as a person types
// them). The caller passes the connection's unparsed bytes; the parser keeps only positions, never bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.h"

namespace holdfast {

class RequestParser {
 public:
  enum class Status {
    kMore,     // the request is not complete: call again with the same bytes and more behind them
    kRequest,  // argv() is the next request, consumed() its length. An empty line or "*0" gives an empty
               // argv
    kBroken,   // the rest of the stream cannot be parsed; error() says why, in Redis's words
  };

  // The limits may change. `limits` must outlive the parser.
  explicit RequestParser(const Limits& limits) : limits_(limits) {}
  explicit RequestParser(Limits&&) = delete;

  // Sets whether the client must still authenticate. Until then it may send only small requests, which
  // suffice for a login. Larger announced sizes are rejected before memory is allocated for them.
  void set_preauth(bool preauth) { preauth_bulk_bytes_ = preauth ? kPreauthBulkBytes : UINT64_MAX; }
  static constexpr uint64_t kPreauthBulkBytes = 16384;
  static constexpr int64_t kPreauthArguments = 10;

  // Continues to parse `bytes`, which begin where the last request ended. The bytes of an earlier call for
  // this request must be the same, though they may have moved. No byte is read twice, except the tail of an
  // unfinished length line. parse({}) between two requests frees the memory of a request with very many
  // arguments. A broken stream stays broken.
  Status parse(std::string_view bytes);

  // Whether no part of a request has been parsed: then RequestBatch may cut the next requests instead.
  bool at_start() const { return phase_ == Phase::kStart; }

  // Valid after kRequest, until the next parse(): views into `bytes`. Arguments of an inline command are
  // views into the parser itself, because their quoting is removed.
  std::span<const std::string_view> argv() const { return argv_; }
  size_t consumed() const { return consumed_; }
  // Valid after kBroken: the error without the leading "Protocol error: ".
  std::string_view error() const { return error_; }
  // Valid after kMore: the least number of bytes that is needed in all, so that a buffer grows only once
  // for a large argument.
  size_t wanted() const { return wanted_; }

 private:
  enum class Phase : uint8_t { kStart, kInline, kCount, kArguments, kBroken };
  // An argument of an unfinished request, as a place that stays valid when the bytes move.
  struct Piece {
    size_t offset;
    size_t size;
  };
  static constexpr size_t kUnknown = SIZE_MAX;

  void begin();
  Status parse_inline(std::string_view bytes);
  Status parse_count(std::string_view bytes);
  Status parse_arguments(std::string_view bytes);
  bool take_plain_count(std::string_view bytes);
  void take_plain_arguments(std::string_view bytes);
  Status take_argument(std::string_view bytes);
  Status read_bulk_length(std::string_view bytes);
  Status find_line(std::string_view bytes, char end, std::string_view too_big, size_t& line_end);
  void park(std::string_view bytes);
  void unpark(std::string_view bytes);

  Status finish(size_t consumed);
  Status more(size_t wanted);
  Status fail(std::string_view why);

  const Limits& limits_;
  uint64_t preauth_bulk_bytes_ = UINT64_MAX;
  std::vector<std::string_view> argv_;
  std::vector<Piece> parked_;  // the arguments that were complete when the last bytes ended
  std::string text_;           // the text that an inline command's arguments view
  std::string error_;
  size_t consumed_ = 0;
  size_t wanted_ = 0;
  size_t position_ = 0;       // where the next element begins
  size_t scanned_ = 0;        // no end of the present line before this
  size_t length_ = kUnknown;  // length of the argument at position_
  uint32_t missing_ = 0;      // arguments still to come
  Phase phase_ = Phase::kStart;
};

}  // namespace holdfast
