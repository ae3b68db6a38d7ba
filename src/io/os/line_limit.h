// Bounds what clients can make the log grow by: so many lines a second, and so many bytes a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

class LineLimit {
 public:
  static constexpr uint64_t kLines = 100;  // a second
  static constexpr size_t kBytes = 1024;   // of a line, as in Redis's log

  enum class Verdict : uint8_t {
    kWrite,
    kWriteNotice,  // one line that says that the rest of this second is left out
    kLeaveOut,
  };

  // A line comes at that time.
  Verdict take(int64_t now_ms) {
    if (now_ms - began_ms_ >= kSecondMs || now_ms < began_ms_) {
      began_ms_ = now_ms;
      lines_ = 0;
    }
    ++lines_;
    if (lines_ <= kLines) return Verdict::kWrite;
    ++left_out_;
    return lines_ == kLines + 1 ? Verdict::kWriteNotice : Verdict::kLeaveOut;
  }
  // How many were left out since the last time this was asked.
  uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  static constexpr int64_t kSecondMs = 1000;
  int64_t began_ms_ = 0;
  uint64_t lines_ = 0;  // since then
  uint64_t left_out_ = 0;
};

// A client's text as one line of the log: cut, and without control characters, which could look like other
// lines.
std::string one_line(std::string_view text);

}  // namespace holdfast
