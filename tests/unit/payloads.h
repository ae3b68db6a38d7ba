// Payloads for RESTORE that Holdfast itself does not write: packed and compressed values, as Redis has
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/codec/rdb.h"
#include "core/persist/payload.h"

namespace holdfast {

inline std::string low_first_bytes(uint64_t n, size_t bytes) {
  std::string text;
  for (; bytes > 0; --bytes, n >>= 8U) text.push_back(static_cast<char>(n & 0xFFU));
  return text;
}

inline std::string rdb_length(uint64_t n) {
  if (n < 64) return {static_cast<char>(n)};
  std::string text = low_first_bytes(n, 4);
  return "\x80" + std::string(text.rbegin(), text.rend());
}

inline std::string rdb_text(const std::string& text) { return rdb_length(text.size()) + text; }

// A text of `unpacked` bytes that LZF has packed.
inline std::string rdb_compressed(const std::string& packed, uint64_t unpacked) {
  return "\xC3" + rdb_length(packed.size()) + rdb_length(unpacked) + packed;
}

inline std::string lzf_literals(std::string_view text) {
  std::string packed;
  for (; !text.empty(); text.remove_prefix(std::min<size_t>(text.size(), 32))) {
    const std::string_view part = text.substr(0, 32);
    packed.append(1, static_cast<char>(part.size() - 1)).append(part);
  }
  return packed;
}

// Repeats the bytes at this distance before; `bytes` is at least 3.
inline std::string lzf_repeat(size_t distance, size_t bytes) {
  std::string packed;
  while (bytes > 0) {
    size_t n = std::min<size_t>(bytes, 264);
    if (bytes - n == 1 || bytes - n == 2) n -= 3;
    const size_t length = n - 2;
    packed.push_back(static_cast<char>((std::min<size_t>(length, 7) << 5U) | ((distance - 1) >> 8U)));
    if (length >= 7) packed.push_back(static_cast<char>(length - 7));
    packed.push_back(static_cast<char>((distance - 1) & 0xFFU));
    bytes -= n;
  }
  return packed;
}

// `head`, then `unit` repeated, then `tail`, as a compressed text.
inline std::string compressed_text(const std::string& head, const std::string& unit, size_t times,
                                   const std::string& tail) {
  return rdb_compressed(
      lzf_literals(head + unit) + lzf_repeat(unit.size(), unit.size() * (times - 1)) + lzf_literals(tail),
      head.size() + unit.size() * times + tail.size());
}

// An element of a listpack with less than 64 bytes.
inline std::string packed_element(const std::string& text) {
  return static_cast<char>(0x80U | text.size()) + text + static_cast<char>(text.size() + 1);
}

inline std::string listpack_head(size_t bytes_of_elements) {
  return low_first_bytes(6 + bytes_of_elements + 1, 4) + "\xFF\xFF";
}

inline std::string listpack(const std::string& elements) {
  return listpack_head(elements.size()) + elements + "\xFF";
}

inline std::string payload_of(uint8_t type, const std::string& value) {
  std::string payload = static_cast<char>(type) + value;
  seal_payload(payload);
  return payload;
}

// A list of equal elements in one compressed node: about 1/88 of the size of the node.
inline std::string repeated_list(size_t elements, const std::string& element = "a") {
  const std::string unit = packed_element(element);
  return payload_of(
      rdb::kTypeListQuicklist2,
      "\x01\x02" + compressed_text(listpack_head(unit.size() * elements), unit, elements, "\xFF"));
}

// A hash of the fields f0, f1, ... in one listpack. All values are `value`.
inline std::string packed_hash(size_t fields, const std::string& value = "v") {
  std::string elements;
  for (size_t i = 0; i < fields; ++i) {
    elements += packed_element("f" + std::to_string(i)) + packed_element(value);
  }
  return payload_of(rdb::kTypeHashListpack, rdb_text(listpack(elements)));
}

inline std::string repeated_string(size_t times, const std::string& unit) {
  return payload_of(rdb::kTypeString, compressed_text("", unit, times, ""));
}

}  // namespace holdfast
