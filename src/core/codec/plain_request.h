// The form of a request that every client library writes: an array of at most nine bulk strings with plain
// lengths. The parser and the batch cut it by the same functions. Any other form is left to the parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/config.h"

namespace holdfast {

inline constexpr size_t kPlainCountBytes = 4;  // "*3\r\n"
inline constexpr uint32_t kPlainArguments = 9;

// Reads a number of one to seven digits, in the form that every client writes, and returns the place of the
// CR behind it. Returns null for another form or an incomplete number: the full parser then handles it.
inline const char* plain_number(const char* p, const char* end, uint32_t& value) {
  if (end - p > 2) {  // one digit or two, like most lengths
    const auto first = static_cast<uint32_t>(p[0] - '0');
    const auto second = static_cast<uint32_t>(p[1] - '0');
    if (first <= 9 && p[1] == '\r') return value = first, p + 1;
    if (first - 1 < 9 && second <= 9 && p[2] == '\r') return value = first * 10 + second, p + 2;
  }
  const char* const stop = end - p > 8 ? p + 8 : end;
  const char* d = p;
  uint32_t n = 0;
  for (; d != stop; ++d) {
    const unsigned digit = static_cast<unsigned char>(*d) - unsigned{'0'};
    if (digit > 9) break;
    n = n * 10 + digit;
  }
  if (d == p || d == stop || *d != '\r' || (*p == '0' && d != p + 1)) return nullptr;
  value = n;
  return d;
}

// Returns the count at the beginning of a request, if it has one digit; else 0.
inline uint32_t plain_count(std::string_view bytes, const Limits& limits) {
  if (bytes.size() < kPlainCountBytes || bytes[0] != '*' || bytes[2] != '\r') return 0;
  const auto count = static_cast<uint32_t>(bytes[1] - '0');
  return count - 1 < kPlainArguments && count <= limits.arguments ? count : 0;
}

// Passes arguments from `position` on to `take`, as long as they are complete and plain. Reduces `missing`
// by their number, and returns the position behind them.
template <class Take>
size_t plain_arguments(std::string_view bytes, size_t position, uint32_t& missing, uint64_t most_bytes,
                       Take take) {
  const char* const end = bytes.data() + bytes.size();
  const char* p = bytes.data() + position;
  uint32_t left = missing;
  for (; left > 0 && end - p > 5 && *p == '$'; --left) {
    uint32_t size = 0;
    const char* const cr = plain_number(p + 1, end, size);
    if (cr == nullptr || size > most_bytes || static_cast<size_t>(end - cr) < size_t{size} + 4) break;
    take(std::string_view(cr + 2, size));
    p = cr + size + 4;
  }
  missing = left;
  return static_cast<size_t>(p - bytes.data());
}

}  // namespace holdfast
