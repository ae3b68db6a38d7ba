// Replies that are too rare to be in the header; see reply.h.
#include "core/codec/reply.h"

#include <algorithm>
#include <cstdio>

namespace holdfast {

void Reply::error(std::string_view text) {
  text = text.substr(0, kMaxErrorBytes);
  const size_t before = out_.size();
  line('-', text);
  if (out_.size() == before) return;
  // The text is now in the buffer, before its CR LF.
  char* const end = out_.reserve(0) - 2;
  std::replace_if(
      end - text.size(), end, [](char c) { return c == '\r' || c == '\n'; }, ' ');
}

void Reply::bulk_integer(int64_t value) {
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  bulk({digits, static_cast<size_t>(end - digits)});
}

void Reply::boolean(bool value) {
  if (protocol_ >= 3) {
    out_.append(value ? "#t\r\n" : "#f\r\n");
  } else {
    out_.append(value ? ":1\r\n" : ":0\r\n");
  }
}

void Reply::verbatim(std::string_view text, std::string_view format) {
  if (protocol_ < 3) return bulk(text);
  char prefix[] = "   :";
  format.copy(prefix, 3);
  prefixed('=', prefix, text);
}

void Reply::number(double value) {
  char digits[32];
  const int size = std::snprintf(digits, sizeof digits, "%.17g", value);
  const std::string_view text(digits, static_cast<size_t>(size));
  protocol_ >= 3 ? line(',', text) : bulk(text);
}

void Reply::big_number(std::string_view digits) { protocol_ >= 3 ? line('(', digits) : bulk(digits); }

}  // namespace holdfast
