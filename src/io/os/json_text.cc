// Accepts UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#include "io/os/json_text.h"

#include <cstdint>
#include <cstdio>

namespace holdfast {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// Returns the length of the sequence at the start of `text`, by its first two bytes; 0 if they are invalid.
size_t length_of(std::string_view text) {
  const uint8_t first = byte_at(text, 0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < 2) return 0;
  const uint8_t second = byte_at(text, 1);
  const uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// Returns the length of the valid sequence at the start of `text`; 0 if it is invalid.
size_t valid_length(std::string_view text) {
  const size_t length = length_of(text);
  if (length > text.size()) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

void append_hex(std::string& out, const char* format, uint8_t byte) {
  char text[8];
  std::snprintf(text, sizeof text, format, byte);
  out += text;
}

void append_ascii(std::string& out, char c) {
  if (c == '"' || c == '\\') {
    (out += '\\') += c;
  } else if (c < ' ' || c == '\x7f') {
    append_hex(out, "\\u%04x", static_cast<uint8_t>(c));
  } else {
    out += c;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view bytes) {
  out += '"';
  while (!bytes.empty()) {
    const size_t length = valid_length(bytes);
    if (length == 0) append_hex(out, "\\\\x%02x", byte_at(bytes, 0));
    if (length == 1) append_ascii(out, bytes[0]);
    if (length > 1) out += bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace holdfast
