// The only hash of keys. It is seeded, so that no client can aim keys at one table, and depends only on the
// seed, so that a run can be repeated. XXH3 (libxxhash). Also maps by string, with a look-up that does not
// create a string.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace holdfast {

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Debian builds Abseil with its own string_view, so that Abseil's string maps do not accept the standard
// one.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
template <class T>
using StringMap = absl::flat_hash_map<std::string, T, StringHash, std::equal_to<>>;

// A hash table in parts. All clients wait while a table grows, and a part is small. The upper bits of the
// hash choose the part, because the tables use them least.
template <class Table>
class InParts {
 public:
  Table& part(uint64_t hash) { return parts_[index(hash)]; }
  const Table& part(uint64_t hash) const { return parts_[index(hash)]; }
  Table& part(std::string_view name) { return parts_[index(StringHash()(name))]; }
  const Table& part(std::string_view name) const { return parts_[index(StringHash()(name))]; }
  size_t size() const {
    size_t sum = 0;
    for (const Table& part : parts_) sum += part.size();
    return sum;
  }
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

 private:
  static constexpr unsigned kBits = 6;
  static size_t index(uint64_t hash) { return hash >> (64U - kBits); }
  std::array<Table, size_t{1} << kBits> parts_;
};

// A key with its hash, computed once per command. Does not own the bytes.
struct Key {
  std::string_view bytes;
  uint64_t hash = 0;
};

}  // namespace holdfast
