// What is known of fencing tokens. Which keys share a counter is the engine's own business, so a new token
// is not foretold but held to its bounds: above all earlier tokens of its key, at least the hint, and no
// further ahead than the largest token anywhere explains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/types.h"
#include "core/state/tokens.h"
#include "frame.h"

namespace holdfast::simulation {

using KeyId = std::pair<int, std::string>;  // database and key

class TokenBook {
 public:
  enum class Lead { kFine, kTooFar, kNobodyKnows };

  TokenBook(uint64_t floor, DurationMs max_lead)
      : floor_(floor), max_lead_us_(static_cast<uint64_t>(max_lead.count) * 1000), largest_(floor) {}

  // A grant (or the first need of a token) on these keys: each counter becomes the token.
  TokenRef granted(const std::vector<KeyId>& keys, uint64_t hint);
  // A FENCE of a hold whose token is `old`.
  TokenRef fenced(const KeyId& key, const TokenRef& old, uint64_t given);
  // `fence`: by a client that may follow another server as far as it is.
  Lead lead(const std::string& key, uint64_t wanted, int64_t wall_us, bool fence) const;

  // To be called once a step's replies have been compared. Says what is wrong, or nothing.
  std::string settle();

  // The largest token known of a key, whatever its database, and of all keys.
  uint64_t counter(const std::string& key) const {
    const auto found = counters_.find(key);
    return found == counters_.end() ? floor_ : found->second;
  }
  uint64_t largest() const { return largest_; }
  // Every token shown lately, for tests to ask about.
  const std::vector<uint64_t>& shown() const { return shown_; }

 private:
  struct Event {
    std::vector<KeyId> keys;
    TokenRef box;
    uint64_t at_least = 0;
    bool fence = false;
    TokenRef old;  // of a fence
  };
  std::string settle(const Event& event, uint64_t highest);
  uint64_t lowest(const Event& event) const;

  uint64_t floor_;
  uint64_t max_lead_us_;
  uint64_t largest_;
  std::map<std::string, uint64_t> counters_;  // before the present step, by name
  std::map<KeyId, uint64_t> latest_;
  std::vector<Event> events_;
  std::vector<uint64_t> shown_;
};

}  // namespace holdfast::simulation
