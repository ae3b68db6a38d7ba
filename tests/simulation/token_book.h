// The knowledge about fencing tokens. The engine decides which keys share a counter, so the model does not
// predict a new token but checks its bounds. It must be above all earlier tokens of its key, at least the
// hint, and no further ahead than the largest token of any key explains.
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
  enum class Lead { kFine, kTooFar, kUndetermined };

  TokenBook(uint64_t floor, DurationMs max_lead)
      : floor_(floor), max_lead_us_(static_cast<uint64_t>(max_lead.count) * 1000), largest_(floor) {}

  // Records a grant (or the first need of a token) on these keys: the token becomes the counter of each.
  TokenRef granted(const std::vector<KeyId>& keys, uint64_t hint);
  // Records a FENCE of a hold whose token is `old`.
  TokenRef fenced(const KeyId& key, const TokenRef& old, uint64_t given);
  // `fence`: the client may follow another server, however far that is ahead.
  Lead lead(const std::string& key, uint64_t wanted, int64_t wall_us, bool fence) const;
  // The same of the token that a lease of these keys would get.
  Lead lead(const std::vector<KeyId>& keys, int64_t wall_us) const;

  // Call it after the comparison of a step's replies. Returns the fault; empty if there is none.
  std::string settle();

  // The largest known token of a key in any database, and of all keys.
  uint64_t counter(const std::string& key) const {
    const auto found = counters_.find(key);
    return found == counters_.end() ? floor_ : found->second;
  }
  uint64_t largest() const { return largest_; }
  // The tokens of recent replies, for tests to use in requests.
  const std::vector<uint64_t>& shown() const { return shown_; }

 private:
  struct Event {
    std::vector<KeyId> keys;
    TokenRef box;
    uint64_t at_least = 0;
    bool fence = false;
    TokenRef old;  // the hold's token before the FENCE
  };
  std::string settle(const Event& event, uint64_t highest);
  uint64_t lowest(const Event& event) const;
  bool may_need_room(const std::string& key, uint64_t token, int64_t wall_us) const;

  uint64_t floor_;
  uint64_t max_lead_us_;
  uint64_t largest_;
  std::map<std::string, uint64_t> counters_;  // before the present step, by name
  std::map<KeyId, uint64_t> latest_;
  std::vector<Event> events_;
  std::vector<uint64_t> shown_;
};

}  // namespace holdfast::simulation
