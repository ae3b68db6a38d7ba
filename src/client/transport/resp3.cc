// The protocol consists of lines, and of texts whose line has their size. So a line can be translated
// alone. Arrays are followed only to find where a value ends.
#include "client/transport/resp3.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>

#include "core/base/parse.h"

namespace holdfast::client {

namespace {

// Larger numbers are left to the reader, which rejects them.
constexpr int64_t kMostElements = int64_t{1} << 30;

}  // namespace

std::string Resp3::translate(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    if (text_left_ > 0) {
      const size_t n = std::min(text_left_, bytes.size());
      out.append(bytes.substr(0, n));
      bytes.remove_prefix(n);
      text_left_ -= n;
      if (text_left_ == 0) end_value();
      continue;
    }
    const size_t end = bytes.find('\n');
    const size_t n = end == std::string_view::npos ? bytes.size() : end + 1;
    line_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    if (end != std::string_view::npos) {
      translate_line(out);
    } else if (line_.size() > line_bytes_ + 1) {  // the reader does not count the type
      out.append(line_);
    } else {
      break;
    }
    line_.clear();
  }
  return out;
}

bool Resp3::take_push() {
  assert(!pushes_.empty());
  const bool push = pushes_.front();
  pushes_.pop_front();
  return push;
}

void Resp3::translate_line(std::string& out) {
  std::string_view rest = std::string_view(line_).substr(1);
  while (rest.ends_with('\n') || rest.ends_with('\r')) rest.remove_suffix(1);
  switch (line_.front()) {
    case '>':
      in_push_ = in_push_ || open_.empty();
      [[fallthrough]];
    case '*':
    case '~':
      return begin_array(rest, 1, out);
    case '%':
      return begin_array(rest, 2, out);
    case '$':
      out.append(line_);
      return begin_text(rest);
    case '_':
      out.append("$-1\r\n");
      break;
    case '#':
      out.append(rest == "t" ? ":1\r\n" : ":0\r\n");
      break;
    case ',':
    case '(':
      out.append("+").append(rest).append("\r\n");
      break;
    default:
      out.append(line_);
      break;
  }
  end_value();
}

// `parts_each`: 2 for a map, whose line has the number of pairs.
void Resp3::begin_array(std::string_view count, int64_t parts_each, std::string& out) {
  const std::optional<int64_t> n = parse_int_in(count, -1, kMostElements);
  out.append("*").append(n && *n > 0 ? std::to_string(*n * parts_each) : std::string(count)).append("\r\n");
  if (!n || *n <= 0) return end_value();
  open_.push_back(*n * parts_each);
}

void Resp3::begin_text(std::string_view size) {
  const std::optional<int64_t> n = parse_int_in(size, -1, std::numeric_limits<int64_t>::max() - 2);
  if (!n || *n < 0) return end_value();
  text_left_ = static_cast<size_t>(*n) + 2;
}

// The present value is complete, and with it the arrays whose last element it is.
void Resp3::end_value() {
  while (!open_.empty() && --open_.back() == 0) open_.pop_back();
  if (!open_.empty()) return;
  pushes_.push_back(in_push_);
  in_push_ = false;
}

}  // namespace holdfast::client
