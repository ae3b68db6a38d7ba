// Fencing tokens: a counter for each stripe of keys, so that a key's tokens grow with every grant, whatever
// becomes of the key. Owns 512 KiB of counters. The database is no part of a stripe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/types.h"

namespace holdfast {

class Tokens {
 public:
  static constexpr size_t kStripes = 65536;

  // No token at or below `floor` is ever given out.
  explicit Tokens(uint64_t floor) : counters_(kStripes, floor), largest_(floor) {}

  // The token of a new grant: max(counter + 1, hint).
  Token next(uint64_t key_hash, uint64_t hint) {
    uint64_t& counter = counters_[key_hash % kStripes];
    counter = std::max(counter + 1, hint);
    largest_ = std::max(largest_, counter);
    return {counter};
  }
  // No later grant of the stripe gets `token` or less.
  void raise(uint64_t key_hash, Token token) {
    uint64_t& counter = counters_[key_hash % kStripes];
    counter = std::max(counter, token.value);
    largest_ = std::max(largest_, counter);
  }
  // The same of all stripes.
  void raise_all(Token token) {
    for (uint64_t& counter : counters_) counter = std::max(counter, token.value);
    largest_ = std::max(largest_, token.value);
  }
  uint64_t last(uint64_t key_hash) const { return counters_[key_hash % kStripes]; }
  uint64_t largest() const { return largest_; }

 private:
  std::vector<uint64_t> counters_;
  uint64_t largest_;
};

}  // namespace holdfast
