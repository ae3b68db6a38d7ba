// What command handlers need to read their arguments: numbers and words, as strict as Redis reads them.
// Pure functions over views.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

// A decimal integer as Redis's string2ll takes it: the whole text, one way to write each number. No blanks,
// "+5", "05", "-0", "1e3"; nothing beyond int64.
std::optional<int64_t> parse_int(std::string_view text);

// The same, and within [lowest, highest].
std::optional<int64_t> parse_int_in(std::string_view text, int64_t lowest, int64_t highest);

// A decimal or hexadecimal number, or "inf", as Redis's string2ld takes it: the whole text, with no blank
// before it, not NaN, neither too large for a long double nor too small to be told from 0.
std::optional<long double> parse_float(std::string_view text);

// The number for people, as Redis's INCRBYFLOAT answers it: no exponent, at most 17 digits behind the
// point, no zeroes at the end. `value` is finite.
std::string format_float(long double value);

// ASCII only, whatever the locale: Redis's words are ASCII.
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr bool equals_ignore_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (ascii_lower(a[i]) != ascii_lower(b[i])) return false;
  }
  return true;
}

// Two lower-case digits for each byte.
void append_hex(std::string& out, std::span<const uint8_t> bytes);

// Redis's answer to a command it does not know, with its code: the name and the first arguments, cut so
// that a huge request does not become a huge error. A name or argument is shown up to its first NUL. `argv`
// is not empty. May contain CR and LF, which Reply::error() makes harmless.
std::string unknown_command_text(std::span<const std::string_view> argv);

}  // namespace holdfast
