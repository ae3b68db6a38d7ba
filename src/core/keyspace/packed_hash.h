// A small hash in one run of bytes, as an entry keeps it: pairs of field and value in the order in which
// the fields came, each field and each value behind its size. No index: a look-up goes through them, which
// for the few fields of a lock is faster than any. Owns nothing; knows no limit of how many fields are few.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace holdfast {

// A field with its value where they lie in memory.
struct PackedPair {
  std::string_view field;
  std::string_view value;
  const char* begin;
  const char* end;
};

// A size takes a byte for each 7 bits of it, the low ones first; all bytes but the last have the high bit.
inline const char* read_packed_size(const char* at, size_t& size) {
  size = static_cast<uint8_t>(*at++);
  if (size < 0x80) [[likely]]
    return at;
  size &= 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    const auto byte = static_cast<uint8_t>(*at++);
    size |= static_cast<size_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return at;
  }
}

// Reads one that put_packed_pair() has written.
inline PackedPair packed_pair_at(const char* begin) {
  size_t size = 0;
  const char* at = read_packed_size(begin, size);
  const std::string_view field(at, size);
  at = read_packed_size(at + size, size);
  return {field, {at, size}, begin, at + size};
}

size_t packed_pair_bytes(std::string_view field, std::string_view value);
// Writes packed_pair_bytes() bytes; returns their end.
char* put_packed_pair(char* to, std::string_view field, std::string_view value);

// A view of a packed hash. Good as long as the bytes are.
class PackedHash {
 public:
  explicit PackedHash(std::string_view bytes) : bytes_(bytes) {}

  // Fields are counted one by one.
  size_t size() const {
    size_t n = 0;
    for_each([&](std::string_view, std::string_view) { ++n; });
    return n;
  }

  std::optional<PackedPair> find_pair(std::string_view field) const {
    for (const char* at = bytes_.data(); at != end();) {
      const PackedPair pair = packed_pair_at(at);
      if (pair.field == field) return pair;
      at = pair.end;
    }
    return std::nullopt;
  }

  std::optional<std::string_view> find(std::string_view field) const {
    const auto pair = find_pair(field);
    if (!pair) return std::nullopt;
    return pair->value;
  }

  // Calls `f(field, value)` in the order in which the fields came.
  template <class F>
  void for_each(F f) const {
    for (const char* at = bytes_.data(); at != end();) {
      const PackedPair pair = packed_pair_at(at);
      f(pair.field, pair.value);
      at = pair.end;
    }
  }

 private:
  const char* end() const { return bytes_.data() + bytes_.size(); }
  std::string_view bytes_;
};

// A copy of a packed hash that can be changed. Short ones need no allocation.
class PackedHashEditor {
 public:
  explicit PackedHashEditor(std::string_view bytes) : bytes_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
  }

  // True where the field is new: then it is the last. Else it keeps its place.
  bool set(std::string_view field, std::string_view value);
  // False where there is no such field.
  bool erase(std::string_view field);

  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  // Where a pair that lies in bytes_ begins, for what changes them.
  size_t offset_of(const char* at) const { return static_cast<size_t>(at - bytes_.data()); }
  void resize_pair(const PackedPair& pair, size_t size);

  absl::InlinedVector<char, 512> bytes_;
};

}  // namespace holdfast
