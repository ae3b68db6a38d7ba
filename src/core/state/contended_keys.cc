// The sketch of contended keys.
#include "core/state/contended_keys.h"

#include <algorithm>

namespace holdfast {

// Returns the place of a key in the sketch. A key that is new there replaces the one with the least weight,
// and takes over its weight.
size_t ContendedKeys::place_for(const Name& name) {
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second;
  size_t index = keys_.size();
  if (index < kMostKeys) {
    keys_.emplace_back();
    weights_.push_back(0);
    by_weight_.insert({0, index});
  } else {
    index = by_weight_.begin()->index;
    key_bytes_ -= keys_[index].key.size();
    by_name_.erase(Name(keys_[index].db, keys_[index].key));
  }
  keys_[index] = {};
  keys_[index].db = name.first;
  keys_[index].key = name.second;
  key_bytes_ += name.second.size();
  by_name_.emplace(name, index);
  return index;
}

void ContendedKeys::record(DbIndex db, std::string_view key, DurationMs waited, bool granted) {
  if (key.size() > kMostKeyBytes) return;
  const size_t index = place_for({db, std::string(key)});
  const auto ms = static_cast<uint64_t>(waited.count);
  by_weight_.erase({weights_[index], index});
  weights_[index] += ms + 1;  // a wait of 0 ms has a weight, too
  by_weight_.insert({weights_[index], index});
  ContendedKey& k = keys_[index];
  ++k.waits;
  k.wait_ms += ms;
  k.max_wait_ms = std::max(k.max_wait_ms, ms);
  k.grants += granted ? 1 : 0;
}

const ContendedKey* ContendedKeys::find(DbIndex db, std::string_view key) const {
  const auto it = by_name_.find(Name(db, key));
  return it == by_name_.end() ? nullptr : &keys_[it->second];
}

void ContendedKeys::clear() {
  keys_.clear();
  weights_.clear();
  by_name_.clear();
  by_weight_.clear();
  key_bytes_ = 0;
}

}  // namespace holdfast
