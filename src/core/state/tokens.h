// Fencing tokens. Each stripe of keys has a counter, so that a key's tokens grow with every grant, also
// after the key was deleted. Owns 512 KiB of counters, of which only the pages in use take memory. A stripe
// does not depend on the database. If a client moves a token far ahead of the clock, the token counts for
// its key alone: a few keys have a counter of their own.
#pragma once

#include <absl/container/btree_map.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/types.h"

namespace holdfast {

// The last token that a client can name. The server reserves the 2^40 tokens above it, so that there is
// always a next one.
inline constexpr uint64_t kLastNamedToken = kMaxToken - (uint64_t{1} << 40U);

// The state that must be on disk before a reply with a token is sent.
struct IssuedTokens {
  uint64_t largest = 0;           // over all stripes
  std::vector<AheadToken> ahead;  // keys with a counter of their own
  uint64_t ahead_serial = 0;      // see Tokens::ahead_serial()
};

class Tokens {
 public:
  static constexpr size_t kStripes = 65536;
  static constexpr size_t kMaxAhead = 256;  // keys with a counter of their own
  static constexpr size_t kMaxAheadKeyBytes = 512;

  // No token at or below `floor` is ever granted.
  explicit Tokens(uint64_t floor);

  // Returns the token of a new grant: max(last + 1, hint). A hint that is not near counts only if the key
  // has, or can have, a counter of its own.
  Token next(const Key& key, uint64_t hint, uint64_t limit) {
    uint64_t& counter = stripe(key);
    if (ahead_.empty() && (hint == 0 || is_near(hint, limit))) [[likely]] {
      counter = std::max(counter + 1, hint);
      largest_ = std::max(largest_, counter);
      return {counter};
    }
    return next_ahead(key, hint, limit);
  }
  // After this call, every grant of the key gets a token above `token`. A token that is not near goes to
  // the key's own counter, or to the stripe's counter if there is no room for another own counter.
  void raise(const Key& key, Token token, uint64_t limit);
  // Whether the token may go to the counter of a stripe. Such a token moves no key ahead of the clock,
  // except keys that are ahead already or would be after a restart.
  bool is_near(uint64_t token, uint64_t limit) const { return token <= std::max(limit, largest_ + 1); }
  // Whether raise() can keep the token apart from other keys, if it must.
  bool fits(const Key& key, uint64_t token, uint64_t limit);
  // Raises the counters of all stripes to at least `token`.
  void raise_all(Token token);
  // Restores a key's own counter from an earlier run. It is already on disk.
  void restore(const AheadToken& saved) { ahead_[saved.key] = {saved.token, saved.token}; }

  uint64_t last(const Key& key) const {
    const uint64_t counter = std::max(counters_[key.hash % kStripes], floor_);
    if (ahead_.empty()) [[likely]]
      return counter;
    const auto own = ahead_.find(key.bytes);
    return own == ahead_.end() ? counter : std::max(counter, own->second.token);
  }
  // Prefetches the counter of a key that is likely to get a token.
  void prefetch(const Key& key) const { __builtin_prefetch(&counters_[key.hash % kStripes], 1); }
  // The largest counter of all stripes.
  uint64_t largest() const { return largest_; }
  size_t ahead_keys() const { return ahead_.size(); }
  // Grows when own counters of keys pass the values that the last issued() returned.
  uint64_t ahead_serial() const { return ahead_serial_; }
  // Returns the state to save. `exact`: the last tokens themselves, because the server grants no more.
  // Otherwise own counters of keys include a reserve.
  IssuedTokens issued(bool exact = false) const;

 private:
  struct Own {
    uint64_t token = 0;
    uint64_t reserve = 0;  // the value that issued() returns: at least `token`
  };
  struct Free {
    void operator()(uint64_t* counters) const { std::free(counters); }
  };
  uint64_t& stripe(const Key& key) {
    uint64_t& counter = counters_[key.hash % kStripes];
    counter = std::max(counter, floor_);
    return counter;
  }
  Token next_ahead(const Key& key, uint64_t hint, uint64_t limit);
  void raise_stripe(const Key& key, uint64_t token);
  bool make_room(const Key& key, uint64_t limit);

  std::unique_ptr<uint64_t[], Free> counters_;  // a stripe without a grant may be below the floor
  uint64_t floor_;                              // no stripe's token is below it
  uint64_t largest_;
  absl::btree_map<std::string, Own, std::less<>> ahead_;
  uint64_t ahead_serial_ = 0;
};

// Returns the largest token, in microseconds since 1970, to which a client may also move the tokens of
// other keys: the clock plus at most 1 hour, and at most half of max-token-lead. The other half is left for
// tokens of servers whose clocks are ahead.
inline uint64_t near_token(const Config& config, const Now& now) {
  constexpr int64_t kMostMs = 3'600'000;
  const int64_t lead_us = std::min(config.max_token_lead.count / 2, kMostMs) * 1000;
  return static_cast<uint64_t>(std::max<int64_t>(now.wall_us, 0) + lead_us);
}

}  // namespace holdfast
