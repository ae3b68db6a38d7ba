// Cuts a stream of bytes into requests (RESP arrays of bulk strings, or inline commands as a person types
// them). One feeds it the connection's unparsed bytes; it keeps only positions, never bytes.
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
    kBroken,   // the stream can never be understood again; error() says why, as Redis words it
  };

  // The limits may change; they must outlive the parser.
  explicit RequestParser(const Limits& limits) : limits_(limits) {}
  explicit RequestParser(Limits&&) = delete;

  // A guest has not said who it is, and may send only what it needs for that: what it announces beyond is
  // refused before it takes any memory.
  void set_guest(bool guest) { guest_bulk_bytes_ = guest ? kGuestBulkBytes : UINT64_MAX; }
  static constexpr uint64_t kGuestBulkBytes = 16384;
  static constexpr int64_t kGuestArguments = 10;

  // Parses on in `bytes`, which begin where the last request ended. The bytes that were there in an earlier
  // call for this request must be the same, though they may have moved. Never looks at a byte twice but for
  // the tail of an unfinished length line. parse({}) between two requests gives back the memory that a
  // request of very many arguments took. A broken stream stays broken.
  Status parse(std::string_view bytes);

  // Valid after kRequest, until the next parse(): views into `bytes` (an inline command's arguments: into
  // the parser itself, for their quoting is undone).
  std::span<const std::string_view> argv() const { return argv_; }
  size_t consumed() const { return consumed_; }
  // After kBroken: without the "Protocol error: " in front of it.
  std::string_view error() const { return error_; }
  // After kMore: at least so many bytes in all are needed, so that a buffer may grow once for a large
  // argument.
  size_t wanted() const { return wanted_; }

 private:
  enum class Phase : uint8_t { kStart, kInline, kCount, kArguments, kBroken };
  // An argument of an unfinished request: a place that stays true when the bytes move.
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
  uint64_t guest_bulk_bytes_ = UINT64_MAX;
  std::vector<std::string_view> argv_;
  std::vector<Piece> parked_;  // the arguments that were complete when the bytes last ran out
  std::string text_;           // what an inline command's arguments view
  std::string error_;
  size_t consumed_ = 0;
  size_t wanted_ = 0;
  size_t position_ = 0;       // where the next element begins
  size_t scanned_ = 0;        // up to here there is no end of the line that begins at position_
  size_t length_ = kUnknown;  // of the argument at position_
  uint32_t missing_ = 0;      // arguments still to come
  Phase phase_ = Phase::kStart;
};

}  // namespace holdfast
