// The keys whose requests wait longest in total: a Space-Saving sketch (Metwally, Agrawal, El Abbadi,
// 2005), weighted by the time of waits. It has a fixed number of keys, whatever keys clients use. Only the
// end of a wait changes it.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

// Since the key is in the sketch.
struct ContendedKey {
  DbIndex db = 0;
  std::string key;
  uint64_t waits = 0;  // that ended
  uint64_t wait_ms = 0;
  uint64_t max_wait_ms = 0;
  uint64_t grants = 0;  // of these waits
};

class ContendedKeys {
 public:
  static constexpr size_t kMostKeys = 512;
  static constexpr size_t kMostKeyBytes = 1024;  // longer keys are not counted

  void record(DbIndex db, std::string_view key, DurationMs waited, bool granted);
  // Null if the sketch does not have the key.
  const ContendedKey* find(DbIndex db, std::string_view key) const;
  const std::vector<ContendedKey>& keys() const { return keys_; }
  void clear();
  uint64_t bytes() const { return keys_.capacity() * sizeof(ContendedKey) + key_bytes_; }

 private:
  // The weight of a key counts for the keys that it replaced as well, so that a key that is new in the
  // sketch does not leave it at once.
  struct Place {
    uint64_t weight = 0;
    size_t index = 0;
    auto operator<=>(const Place&) const = default;
  };
  using Name = std::pair<DbIndex, std::string>;
  size_t place_for(const Name& name);

  std::vector<ContendedKey> keys_;
  std::vector<uint64_t> weights_;              // of keys_
  absl::flat_hash_map<Name, size_t> by_name_;  // index in keys_
  absl::btree_set<Place> by_weight_;
  uint64_t key_bytes_ = 0;
};

}  // namespace holdfast
