// Decodes UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, at most U+10FFFF.
#include "cli/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace holdfast {
namespace {

// One character at the start of a text. Bytes that are not UTF-8 are characters of one byte, not valid.
struct Character {
  uint32_t code = 0;
  size_t length = 1;
  bool valid = false;
};

Character first_character_of(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
  uint32_t code = lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = (code << 6U) | (byte(i) & 0x3fU);
  }
  const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return {code, length, code >= least && code <= 0x10ffff && !surrogate};
}

bool is_harmless(const Character& c) {
  const bool control = c.code < ' ' || (c.code >= 0x7f && c.code < 0xa0);
  const bool direction = (c.code >= 0x202a && c.code <= 0x202e) || (c.code >= 0x2066 && c.code <= 0x2069);
  return c.valid && !control && !direction;
}

template <typename Keep>
std::string escaped(std::string_view bytes, const Keep& keep) {
  std::string text;
  while (!bytes.empty()) {
    const Character c = first_character_of(bytes);
    const size_t length = c.valid ? c.length : 1;
    if (is_harmless(c) && keep(c.code)) {
      text += bytes.substr(0, length);
    } else {
      for (const char byte : bytes.substr(0, length))
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    bytes.remove_prefix(length);
  }
  return text;
}

}  // namespace

std::string printable(std::string_view bytes, bool word) {
  const std::string text = escaped(bytes, [&](uint32_t c) { return c != '\\' && (c != ' ' || !word); });
  return text.empty() && word ? "\"\"" : text;
}

std::string safe_line(std::string_view message, size_t most) {
  const std::string line = escaped(message.substr(0, most), [](uint32_t) { return true; });
  return message.size() <= most ? line : fmt::format("{}... ({} more bytes)", line, message.size() - most);
}

}  // namespace holdfast
