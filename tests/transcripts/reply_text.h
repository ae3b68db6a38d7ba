// Turns RESP replies into the text of transcripts: one line per reply, with every byte visible. The forms
// of the two protocols differ: nil is "$-1", nil-array is "*-1", null is RESP3's "_".
#pragma once

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::transcript {

// Writes a string as redis-cli does: in quotes, with escapes for bytes that are not printable.
inline std::string in_quotes(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\r' || c == '\n' || c == '\t') {
      out += c == '\r' ? "\\r" : c == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Reads the replies in a connection's output one after the other. Throws std::runtime_error where the
// bytes are not RESP: the engine never sends a part of a reply.
class ReplyText {
 public:
  // With `sorted`, sorts the elements of every array, for replies whose order is unspecified.
  ReplyText(std::string_view bytes, bool sorted) : bytes_(bytes), sorted_(sorted) {}

  bool done() const { return at_ == bytes_.size(); }

  std::string next() {
    const std::string head(line());
    const std::string rest = head.substr(1);
    switch (head[0]) {
      case '+':
      case '-':
      case ',':
        return head;
      case ':':
        return rest;
      case '_':
        return "null";
      case '#':
        return rest == "t" ? "true" : "false";
      case '$':
        return rest == "-1" ? "nil" : in_quotes(take(number(rest)));
      case '=':
        return "txt" + in_quotes(take(number(rest)).substr(4));
      case '*':
        return rest == "-1" ? "nil-array" : "[" + elements(number(rest)) + "]";
      case '~':
        return "~[" + elements(number(rest)) + "]";
      case '>':
        return ">[" + elements(number(rest)) + "]";
      case '%':
        return "{" + pairs(number(rest)) + "}";
      default:
        throw std::runtime_error("not a reply: " + in_quotes(head));
    }
  }

 private:
  static size_t number(const std::string& text) {
    size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw std::runtime_error("not a length: " + in_quotes(text));
    }
    return value;
  }

  std::string_view line() {
    const size_t end = bytes_.find("\r\n", at_);
    if (end == std::string_view::npos || end == at_) throw std::runtime_error("half a reply");
    const std::string_view found = bytes_.substr(at_, end - at_);
    at_ = end + 2;
    return found;
  }

  std::string_view take(size_t n) {
    if (bytes_.size() - at_ < n + 2 || bytes_.substr(at_ + n, 2) != "\r\n") {
      throw std::runtime_error("a bulk string whose length is wrong");
    }
    const std::string_view found = bytes_.substr(at_, n);
    at_ += n + 2;
    return found;
  }

  std::string elements(size_t n) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < n; ++i) texts.push_back(next());
    if (sorted_) std::sort(texts.begin(), texts.end());
    return joined(texts);
  }

  std::string pairs(size_t n) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < n; ++i) {
      std::string key = next();
      texts.push_back(std::move(key) + ": " + next());
    }
    return joined(texts);
  }

  static std::string joined(const std::vector<std::string>& texts) {
    std::string out;
    for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
    return out;
  }

  std::string_view bytes_;
  bool sorted_;
  size_t at_ = 0;
};

}  // namespace holdfast::transcript
