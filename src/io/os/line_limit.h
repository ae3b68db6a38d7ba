// Limits how fast clients can make the log grow: lines per second, and bytes per line.
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
    kWriteNotice,  // write one line: the rest of this second is left out
    kLeaveOut,
  };

  // Decides about a line at that time.
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
  // Returns the number of lines left out since the last call.
  uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  static constexpr int64_t kSecondMs = 1000;
  int64_t began_ms_ = 0;
  uint64_t lines_ = 0;  // since began_ms_
  uint64_t left_out_ = 0;
};

// Returns a client's text as one line of the log: truncated to kBytes, and each control character, which
// could forge a line, replaced by '?'.
std::string one_line(std::string_view text);

}  // namespace holdfast
