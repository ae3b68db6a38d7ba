// Functions that command handlers need to read their arguments: numbers and words, as strict as in Redis.
// Pure functions over views.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

// Reads a decimal integer like Redis's string2ll: the whole text, with one form for each number. Returns
// nullopt for blanks, "+5", "05", "-0", "1e3", and for numbers outside int64.
std::optional<int64_t> parse_int(std::string_view text);

// Like parse_int(), and the number must be within [lowest, highest].
std::optional<int64_t> parse_int_in(std::string_view text, int64_t lowest, int64_t highest);

// Reads a decimal or hexadecimal number, or "inf", like Redis's string2ld: the whole text, without a
// leading blank. Returns nullopt for NaN, for a number too large for a long double, and for one too small
// to differ from 0.
std::optional<long double> parse_float(std::string_view text);

// Formats a number like the reply of Redis's INCRBYFLOAT: no exponent, at most 17 digits after the point,
// no trailing zeroes. `value` is finite.
std::string format_float(long double value);

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ASCII only, whatever the locale: Redis's words are ASCII.
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr bool equals_ignore_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (ascii_lower(a[i]) != ascii_lower(b[i])) return false;
  }
  return true;
}

// Appends two lower-case digits for each byte.
void append_hex(std::string& out, std::span<const uint8_t> bytes);

// Redis's error reply for an unknown command, with its code: the name and the first arguments. They are
// cut, so that a huge request does not cause a huge error. A name or argument is shown up to its first NUL.
// `argv` is not empty. The text may contain CR and LF, which Reply::error() replaces.
std::string unknown_command_text(std::span<const std::string_view> argv);

}  // namespace holdfast
