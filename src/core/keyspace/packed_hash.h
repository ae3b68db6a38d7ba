// A small hash in one run of bytes, as an entry stores it: pairs of field and value in the order of
// insertion. Each field and each value has its size in front. There is no index: for the few fields of a
// lock, a linear search is faster than any index. Owns nothing; does not know the limits of a small hash.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace holdfast {

// A field and its value, as views of the packed bytes.
struct PackedPair {
  std::string_view field;
  std::string_view value;
  const char* begin;
  const char* end;
};

// Reads a size: one byte for each 7 bits, the low ones first. All bytes but the last have the high bit set.
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

// Reads a pair that put_packed_pair() wrote.
inline PackedPair packed_pair_at(const char* begin) {
  size_t size = 0;
  const char* at = read_packed_size(begin, size);
  const std::string_view field(at, size);
  at = read_packed_size(at + size, size);
  return {field, {at, size}, begin, at + size};
}

size_t packed_pair_bytes(std::string_view field, std::string_view value);
// Writes packed_pair_bytes() bytes to `to`. Returns their end.
char* put_packed_pair(char* to, std::string_view field, std::string_view value);

// A view of a packed hash. Valid as long as the bytes are.
class PackedHash {
 public:
  explicit PackedHash(std::string_view bytes) : bytes_(bytes) {}

  // Counts the fields one by one.
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

  // Calls `f(field, value)` in the order of insertion.
  template <class F>
  void for_each(F f) const {
    for_each_while([&](std::string_view field, std::string_view value) { return f(field, value), true; });
  }
  // The same, until `f` returns false.
  template <class F>
  void for_each_while(F f) const {
    for (const char* at = bytes_.data(); at != end();) {
      const PackedPair pair = packed_pair_at(at);
      if (!f(pair.field, pair.value)) return;
      at = pair.end;
    }
  }

 private:
  const char* end() const { return bytes_.data() + bytes_.size(); }
  std::string_view bytes_;
};

// A copy of a packed hash that can be changed. A short hash needs no allocation.
class PackedHashEditor {
 public:
  explicit PackedHashEditor(std::string_view bytes) : bytes_(bytes.size()) {
    if (!bytes.empty()) std::memcpy(bytes_.data(), bytes.data(), bytes.size());
  }

  // Returns whether the field is new. A new field becomes the last; an old one keeps its place.
  bool set(std::string_view field, std::string_view value);
  // Returns false if there is no such field.
  bool erase(std::string_view field);

  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  // The offset of a pair in bytes_, for changes that may move the bytes.
  size_t offset_of(const char* at) const { return static_cast<size_t>(at - bytes_.data()); }
  void resize_pair(const PackedPair& pair, size_t size);

  absl::InlinedVector<char, 512> bytes_;
};

}  // namespace holdfast
