// The one hash of keys: seeded, so that nobody outside can aim keys at one table, and fixed by the seed, so
// that a run can be repeated. XXH3 (libxxhash). Also maps by string that are searched without making one.
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

// Debian builds Abseil with a string_view of its own, so that its string maps do not take the standard one.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
template <class T>
using StringMap = absl::flat_hash_map<std::string, T, StringHash, std::equal_to<>>;

// A hash table in parts, as everybody waits while one grows: each part has its moment for itself. The part
// is chosen by the upper bits of the hash, which the tables use least.
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

// A key with its hash, computed once a command. Does not own the bytes.
struct Key {
  std::string_view bytes;
  uint64_t hash = 0;
};

}  // namespace holdfast
