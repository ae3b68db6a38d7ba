// A strict reader of the engine's output: it must consist of complete replies, in valid RESP.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::fuzz {

class RespReader {
 public:
  explicit RespReader(std::string_view bytes) : rest_(bytes) {}

  bool only_whole_replies() {
    while (!rest_.empty()) {
      if (!take_reply(0)) return false;
    }
    return true;
  }

 private:
  static constexpr int kDeepest = 200;  // scripts nest tables

  std::optional<std::string_view> take_line() {
    const size_t end = rest_.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 2);
    return line;
  }

  static std::optional<int64_t> number(std::string_view text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }

  static bool is_double(std::string_view text) {
    if (text == "inf" || text == "-inf" || text == "nan") return true;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }

  bool take_bytes(int64_t size) {
    if (size < 0 || rest_.size() < static_cast<size_t>(size) + 2) return false;
    if (rest_.substr(static_cast<size_t>(size), 2) != "\r\n") return false;
    rest_.remove_prefix(static_cast<size_t>(size) + 2);
    return true;
  }

  bool take_elements(int64_t n, int depth) {
    if (n < 0 || depth > kDeepest) return false;
    for (int64_t i = 0; i < n; ++i) {
      if (!take_reply(depth + 1)) return false;
    }
    return true;
  }

  bool take_reply(int depth) {
    const std::optional<std::string_view> line = take_line();
    if (!line || line->empty()) return false;
    const std::string_view text = line->substr(1);
    const std::optional<int64_t> n = number(text);
    switch (line->front()) {
      case '+':
      case '-':
        return text.find_first_of("\r\n") == std::string_view::npos;
      case ':':
        return n.has_value();
      case ',':
        return is_double(text);
      case '#':
        return text == "t" || text == "f";
      case '_':
        return text.empty();
      case '(':
        return !text.empty() && text.find_first_not_of("-0123456789") == std::string_view::npos;
      case '$':
        return n && (*n == -1 || take_bytes(*n));
      case '=':
        return n && *n >= 4 && take_bytes(*n);
      case '*':
        return n && (*n == -1 || take_elements(*n, depth));
      case '~':
      case '>':
        return n && take_elements(*n, depth);
      case '%':
        return n && take_elements(2 * *n, depth);
      default:
        return false;
    }
  }

  std::string_view rest_;
};

}  // namespace holdfast::fuzz
