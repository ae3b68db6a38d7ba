// Fencing tokens: a counter for each stripe of keys, so that a key's tokens grow with every grant, whatever
// becomes of the key. Owns 512 KiB of counters. The database is no part of a stripe. A token that a client
// has moved far ahead of the clock counts for its own key alone: a few keys have a counter of their own.
#pragma once

#include <absl/container/btree_map.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/types.h"

namespace holdfast {

// The last token that a client can name: the 2^40 behind it are the server's own, so that there is a next
// one.
inline constexpr uint64_t kLastNamedToken = kMaxToken - (uint64_t{1} << 40U);

// What has to be on disk before an answer with a token leaves.
struct IssuedTokens {
  uint64_t largest = 0;           // of all stripes
  std::vector<AheadToken> ahead;  // keys with a counter of their own
  uint64_t ahead_serial = 0;      // see Tokens::ahead_serial()
};

class Tokens {
 public:
  static constexpr size_t kStripes = 65536;
  static constexpr size_t kMaxAhead = 256;  // keys with a counter of their own
  static constexpr size_t kMaxAheadKeyBytes = 512;

  // No token at or below `floor` is ever given out.
  explicit Tokens(uint64_t floor) : counters_(kStripes, floor), largest_(floor) {}

  // The token of a new grant: max(last + 1, hint). A hint that is not near counts only where the key has,
  // or can have, a counter of its own.
  Token next(const Key& key, uint64_t hint, uint64_t limit) {
    uint64_t& counter = stripe(key);
    if (ahead_.empty() && (hint == 0 || is_near(hint, limit))) [[likely]] {
      counter = std::max(counter + 1, hint);
      largest_ = std::max(largest_, counter);
      return {counter};
    }
    return next_ahead(key, hint, limit);
  }
  // No later grant of the key gets `token` or less. A token that is not near goes to a counter of the key
  // alone; where there is no room for one, to that of the stripe.
  void raise(const Key& key, Token token, uint64_t limit);
  // Whether the token may go to the counter of a stripe: no key gets ahead of the clock with it that is not
  // so already, or would be after a restart.
  bool is_near(uint64_t token, uint64_t limit) const { return token <= std::max(limit, largest_ + 1); }
  // Whether raise() can keep the token apart from other keys, if it has to.
  bool fits(const Key& key, uint64_t token, uint64_t limit);
  // The same of all stripes.
  void raise_all(Token token);
  // A counter of an earlier run. It is on disk.
  void restore(const AheadToken& saved) { ahead_[saved.key] = {saved.token, saved.token}; }

  uint64_t last(const Key& key) const {
    const uint64_t counter = counters_[key.hash % kStripes];
    if (ahead_.empty()) [[likely]]
      return counter;
    const auto own = ahead_.find(key.bytes);
    return own == ahead_.end() ? counter : std::max(counter, own->second.token);
  }
  // Of the stripes.
  uint64_t largest() const { return largest_; }
  size_t ahead_keys() const { return ahead_.size(); }
  // Grows when what was issued of counters of single keys is no longer covered by the last issued().
  uint64_t ahead_serial() const { return ahead_serial_; }
  // `exact`: nothing is issued any more. Otherwise counters of single keys come with a reserve.
  IssuedTokens issued(bool exact = false) const;

 private:
  struct Own {
    uint64_t token = 0;
    uint64_t reserve = 0;  // what issued() says: at least `token`
  };
  uint64_t& stripe(const Key& key) { return counters_[key.hash % kStripes]; }
  Token next_ahead(const Key& key, uint64_t hint, uint64_t limit);
  void raise_stripe(const Key& key, uint64_t token);
  bool make_room(const Key& key, uint64_t limit);

  std::vector<uint64_t> counters_;
  uint64_t largest_;
  absl::btree_map<std::string, Own, std::less<>> ahead_;
  uint64_t ahead_serial_ = 0;
};

}  // namespace holdfast
