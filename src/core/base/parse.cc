// Reads numbers and formats arguments; see parse.h.
#include "core/base/parse.h"

#include <cassert>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace holdfast {
namespace {

constexpr size_t kShownBytes = 128;  // of an unknown command's name, and of all its arguments

constexpr size_t kSafeDigits = 18;  // a number with so many digits fits an int64

constexpr size_t kMaxFloatBytes = 5 * 1024;  // Redis's; "%.17Lf" needs 4952 at most

// Returns the part that printf's "%.*s" would print.
std::string_view shown_part(std::string_view text, size_t most) {
  const std::string_view cut = text.substr(0, most);
  return cut.substr(0, cut.find('\0'));
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text) {
  if (text.size() == 1 && text[0] == '0') return 0;
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() <= first || text[first] < '1' || text[first] > '9') return std::nullopt;
  int64_t value = 0;
  if (first == 0 && text.size() <= kSafeDigits) {
    for (const char c : text) {
      const auto digit = static_cast<unsigned>(c - '0');
      if (digit > 9) return std::nullopt;
      value = value * 10 + digit;
    }
    return value;
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_int_in(std::string_view text, int64_t lowest, int64_t highest) {
  const std::optional<int64_t> value = parse_int(text);
  if (!value || *value < lowest || *value > highest) return std::nullopt;
  return value;
}

std::optional<long double> parse_float(std::string_view text) {
  // A blank is a character for which C's isspace() is true; strtold() would skip it.
  if (text.empty() || text.size() >= kMaxFloatBytes ||
      std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    return std::nullopt;
  }
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

std::string format_float(long double value) {
  assert(std::isfinite(value));
  char text[kMaxFloatBytes];
  const int size = std::snprintf(text, sizeof text, "%.17Lf", value);
  std::string_view shown(text, static_cast<size_t>(size));
  shown = shown.substr(0, shown.find_last_not_of('0') + 1);  // "%.17Lf" always writes a point
  if (shown.ends_with('.')) shown.remove_suffix(1);
  return std::string(shown == "-0" ? "0" : shown);
}

void append_hex(std::string& out, std::span<const uint8_t> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  size_t at = out.size();
  out.resize(at + 2 * bytes.size());
  for (const uint8_t byte : bytes) {
    out[at++] = kDigits[byte >> 4U];
    out[at++] = kDigits[byte & 15U];
  }
}

std::string unknown_command_text(std::span<const std::string_view> argv) {
  assert(!argv.empty());
  std::string shown;
  for (size_t i = 1; i < argv.size() && shown.size() < kShownBytes; ++i) {
    const std::string_view part = shown_part(argv[i], kShownBytes - shown.size());
    shown.append("'").append(part).append("' ");
  }
  std::string text = "ERR unknown command '";
  text.append(shown_part(argv[0], kShownBytes)).append("', with args beginning with: ");
  return text.append(shown);
}

}  // namespace holdfast
