// Cuts requests out of a stream; see resp.h. The grammar, with N and len as Redis's strict integers:
//   frame  = "*" N CR any  N * ("$" len CR any  len bytes  any any)      (Redis does not look at `any`)
//   inline = words in sdssplitargs' quoting, then LF or CR LF; never begins with "*"
#include "core/codec/resp.h"

#include <algorithm>

#include "core/base/parse.h"
#include "core/base/words.h"
#include "core/codec/plain_request.h"

namespace holdfast {
namespace {

using Status = RequestParser::Status;

// The parser frees the room of requests that are larger than this.
constexpr size_t kKeptArguments = 1024;
constexpr size_t kKeptTextBytes = 1024;

template <typename Container>
void clear_and_trim(Container& c, size_t keep) {
  c.clear();
  if (c.capacity() > keep) Container().swap(c);
}

// The byte as Redis's "%c" writes it. Redis sends no reply at all for a line with a NUL; Holdfast shows a
// blank.
char shown(char c) { return c == '\r' || c == '\n' || c == '\0' ? ' ' : c; }

}  // namespace

Status RequestParser::finish(size_t consumed) {
  consumed_ = consumed;
  phase_ = Phase::kStart;
  return Status::kRequest;
}

Status RequestParser::more(size_t wanted) {
  wanted_ = wanted;
  return Status::kMore;
}

Status RequestParser::fail(std::string_view why) {
  error_ = why;
  argv_.clear();
  phase_ = Phase::kBroken;
  return Status::kBroken;
}

void RequestParser::begin() {
  clear_and_trim(argv_, kKeptArguments);
  position_ = 0;
  scanned_ = 0;
}

Status RequestParser::parse(std::string_view bytes) {
  if (phase_ == Phase::kStart) {
    begin();
    if (take_plain_count(bytes)) {
      take_plain_arguments(bytes);
      if (missing_ == 0) return finish(position_);
    } else {
      if (bytes.empty()) return more(1);
      phase_ = bytes[0] == '*' ? Phase::kCount : Phase::kInline;
    }
  }
  if (phase_ == Phase::kCount) {
    const Status status = parse_count(bytes);
    if (phase_ != Phase::kArguments) return status;
  }
  if (phase_ == Phase::kArguments) return parse_arguments(bytes);
  return phase_ == Phase::kInline ? parse_inline(bytes) : Status::kBroken;
}

// Finds the byte that ends the line at position_. It searches no further than the longest line, so that the
// result does not depend on how the bytes were split.
Status RequestParser::find_line(std::string_view bytes, char end, std::string_view too_big,
                                size_t& line_end) {
  const size_t longest = position_ + std::min<uint64_t>(limits_.inline_bytes, preauth_bulk_bytes_);
  const std::string_view window = bytes.substr(0, longest + 1);
  line_end = window.find(end, std::max(scanned_, position_));
  if (line_end != std::string_view::npos) return Status::kRequest;
  if (window.size() > longest) return fail(too_big);
  scanned_ = window.size();
  return more(bytes.size() + 1);
}

Status RequestParser::parse_inline(std::string_view bytes) {
  size_t newline = 0;
  const Status status = find_line(bytes, '\n', "too big inline request", newline);
  if (status != Status::kRequest) return status;
  std::string_view line = bytes.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  clear_and_trim(text_, kKeptTextBytes);
  if (!split_quoted_words(line, text_, argv_)) return fail("unbalanced quotes in request");
  if (argv_.size() > limits_.arguments) return fail("too big inline request");
  return finish(newline + 1);
}

Status RequestParser::parse_count(std::string_view bytes) {
  size_t cr = 0;
  const Status status = find_line(bytes, '\r', "too big mbulk count string", cr);
  if (status != Status::kRequest) return status;
  if (cr + 2 > bytes.size()) return more(cr + 2);
  const std::optional<int64_t> count = parse_int(bytes.substr(1, cr - 1));
  if (!count || *count > limits_.arguments) return fail("invalid multibulk length");
  if (*count > kPreauthArguments && preauth_bulk_bytes_ != UINT64_MAX) {
    return fail("unauthenticated multibulk length");
  }
  if (*count <= 0) return finish(cr + 2);
  missing_ = static_cast<uint32_t>(*count);
  position_ = cr + 2;
  length_ = kUnknown;
  phase_ = Phase::kArguments;
  return more(position_ + 1);
}

Status RequestParser::parse_arguments(std::string_view bytes) {
  for (;;) {
    if (length_ == kUnknown) take_plain_arguments(bytes);
    if (missing_ == 0) break;
    const Status status = take_argument(bytes);
    if (status == Status::kMore) park(bytes);
    if (status != Status::kRequest) return status;
  }
  if (!parked_.empty()) unpark(bytes);
  return finish(position_);
}

// Fast path for the beginning of nearly every request.
inline bool RequestParser::take_plain_count(std::string_view bytes) {
  missing_ = plain_count(bytes, limits_);
  if (missing_ == 0) return false;
  position_ = kPlainCountBytes;
  length_ = kUnknown;
  phase_ = Phase::kArguments;
  return true;
}

// Fast path for the arguments: those that are complete and have plain lengths.
inline void RequestParser::take_plain_arguments(std::string_view bytes) {
  const uint64_t most_bytes = std::min(limits_.bulk_bytes, preauth_bulk_bytes_);
  position_ = plain_arguments(bytes, position_, missing_, most_bytes,
                              [this](std::string_view argument) { argv_.push_back(argument); });
}

// Reads one argument in any form.
Status RequestParser::take_argument(std::string_view bytes) {
  if (length_ == kUnknown) {
    const Status status = read_bulk_length(bytes);
    if (status != Status::kRequest) return status;
  }
  const size_t next = position_ + length_ + 2;
  if (bytes.size() < next) return more(next);
  argv_.push_back(bytes.substr(position_, length_));
  position_ = next;
  length_ = kUnknown;
  --missing_;
  return Status::kRequest;
}

// Like Redis: a wrong first byte is an error only when its line is complete.
Status RequestParser::read_bulk_length(std::string_view bytes) {
  size_t cr = 0;
  const Status status = find_line(bytes, '\r', "too big bulk count string", cr);
  if (status != Status::kRequest) return status;
  if (cr + 2 > bytes.size()) return more(cr + 2);
  const char type = bytes[position_];
  if (type != '$') return fail(std::string("expected '$', got '") + shown(type) + "'");
  const std::optional<int64_t> size = parse_int(bytes.substr(position_ + 1, cr - position_ - 1));
  if (!size || *size < 0 || static_cast<uint64_t>(*size) > limits_.bulk_bytes)
    return fail("invalid bulk length");
  if (static_cast<uint64_t>(*size) > preauth_bulk_bytes_) return fail("unauthenticated bulk length");
  length_ = static_cast<size_t>(*size);
  position_ = cr + 2;
  return Status::kRequest;
}

// Parks each argument once and unparks it once, so that the number of splits of a request adds no cost.
void RequestParser::park(std::string_view bytes) {
  for (std::string_view argument : argv_) {
    parked_.push_back({static_cast<size_t>(argument.data() - bytes.data()), argument.size()});
  }
  argv_.clear();
}

void RequestParser::unpark(std::string_view bytes) {
  park(bytes);
  for (const Piece& piece : parked_) argv_.push_back(bytes.substr(piece.offset, piece.size));
  clear_and_trim(parked_, kKeptArguments);
}

}  // namespace holdfast
