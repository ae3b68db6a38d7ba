// Writes RESP2 or RESP3 replies into a buffer. Owns nothing; knows the forms of both protocols, and no
// command. A buffer with a limit takes no bytes beyond it: see Buffer::overflowed().
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/buffer.h"

namespace holdfast {

class Reply {
 public:
  // `protocol` is 2 or 3. The buffer must outlive the writer.
  Reply(Buffer& out, int protocol) : out_(out), protocol_(protocol) {}

  void ok() { out_.append("+OK\r\n"); }
  // `text` has neither CR nor LF.
  void simple(std::string_view text) { line('+', text); }
  // `text` begins with the error's code, without the dash ("ERR no such thing"). CR and LF in it, which an
  // argument may contain, become spaces. Text beyond kMaxErrorBytes is cut off.
  void error(std::string_view text);
  void integer(int64_t value) { number_line(':', value); }
  void bulk(std::string_view bytes) { prefixed('$', "", bytes); }
  // A bulk string that holds a number.
  void bulk_integer(int64_t value);
  void null() { out_.append(protocol_ >= 3 ? "_\r\n" : "$-1\r\n"); }
  void null_array() { out_.append(protocol_ >= 3 ? "_\r\n" : "*-1\r\n"); }
  void boolean(bool value);  // RESP2 ":1" / ":0", RESP3 "#t" / "#f"
  // A text for people: RESP2 bulk, RESP3 verbatim. A verbatim text shows three bytes of `format`.
  void verbatim(std::string_view text, std::string_view format = "txt");
  void number(double value);                 // RESP2: a bulk string; 17 digits, like Redis
  void big_number(std::string_view digits);  // RESP2: a bulk string

  // A field and its value, of a map for example.
  void pair(std::string_view name, std::string_view value) { bulk(name), bulk(value); }
  void pair(std::string_view name, int64_t value) { bulk(name), integer(value); }

  // Headers; `n` elements (for a map: pairs) follow.
  void array(size_t n) { number_line('*', n); }
  // RESP2: an array of 2n
  void map(size_t n) { protocol_ >= 3 ? number_line('%', n) : number_line('*', 2 * n); }
  void set(size_t n) { number_line(protocol_ >= 3 ? '~' : '*', n); }   // RESP2: an array
  void push(size_t n) { number_line(protocol_ >= 3 ? '>' : '*', n); }  // RESP2: an array

  int protocol() const { return protocol_; }
  Buffer& out() { return out_; }

  static constexpr size_t kMaxErrorBytes = 4096;

 private:
  static constexpr size_t kMaxNumberLine = 23;  // a type, 20 characters of a 64-bit number, CR, LF

  template <typename Integer>
  static char* put_number_line(char* to, char type, Integer n) {
    *to = type;
    return put_line_end(std::to_chars(to + 1, to + 21, n).ptr);
  }
  static char* put_line_end(char* to) {
    std::memcpy(to, "\r\n", 2);
    return to + 2;
  }
  static char* put(char* to, std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return to + bytes.size();
  }

  template <typename Integer>
  void number_line(char type, Integer n) {
    char* const start = out_.reserve(kMaxNumberLine);
    if (start == nullptr) return;
    if (n >= 0 && n < 10) {  // like most numbers
      const char text[4] = {type, static_cast<char>('0' + n), '\r', '\n'};
      std::memcpy(start, text, sizeof text);
      return out_.commit(sizeof text);
    }
    out_.commit(static_cast<size_t>(put_number_line(start, type, n) - start));
  }
  void line(char type, std::string_view text) {
    char* const start = out_.reserve(text.size() + 3);
    if (start == nullptr) return;
    *start = type;
    out_.commit(static_cast<size_t>(put_line_end(put(start + 1, text)) - start));
  }
  // A string of known length in two parts, one of which is usually empty and costs nothing.
  void prefixed(char type, std::string_view prefix, std::string_view bytes) {
    const size_t size = prefix.size() + bytes.size();
    char* const start = out_.reserve(kMaxNumberLine + size + 2);
    if (start == nullptr) return;
    char* to = put_number_line(start, type, size);
    to = put_line_end(put(put(to, prefix), bytes));
    out_.commit(static_cast<size_t>(to - start));
  }

  Buffer& out_;
  int protocol_;
};

}  // namespace holdfast
