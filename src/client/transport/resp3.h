// Translates replies from RESP3 to RESP2, the protocol that hiredis before version 1 reads. Without the
// translation that reader would end a connection at the first push.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::client {

class Resp3 {
 public:
  // `line_bytes`: a longer line is passed on unchanged, for the reader to reject.
  explicit Resp3(size_t line_bytes) : line_bytes_(line_bytes) {}

  // Returns the translation of these bytes, except of a line that is not complete yet. A map becomes an
  // array of names and values, a set or a push an array, a null a null bulk, a boolean the integer 0 or 1,
  // a double or a large number a status. A line of another type stays as it is.
  std::string translate(std::string_view bytes);
  // Whether the next complete value was a push; each value once, in their order.
  bool take_push();

 private:
  void translate_line(std::string& out);
  void begin_array(std::string_view count, int64_t parts_each, std::string& out);
  void begin_text(std::string_view size);
  void end_value();

  const size_t line_bytes_;
  std::string line_;           // the beginning of an incomplete line
  size_t text_left_ = 0;       // bytes of the present text, with its end of line
  std::vector<int64_t> open_;  // of each array around the present value: the number of missing elements
  bool in_push_ = false;       // the outermost value is a push
  std::deque<bool> pushes_;    // complete values
};

}  // namespace holdfast::client
