// Checks the bounds of fencing tokens once they are known.
#include "token_book.h"

#include <algorithm>

namespace holdfast::simulation {

TokenRef TokenBook::granted(const std::vector<KeyId>& keys, uint64_t hint) {
  auto box = std::make_shared<TokenBox>();
  events_.push_back({keys, box, hint, false, nullptr});
  return box;
}

TokenRef TokenBook::fenced(const KeyId& key, const TokenRef& old, uint64_t given) {
  auto box = std::make_shared<TokenBox>();
  if (old && old->known) *box = {true, std::max(old->value, given)};
  events_.push_back({{key}, box, given, true, old});
  return box;
}

TokenBook::Lead TokenBook::lead(const std::string& key, uint64_t wanted, int64_t wall_us,
                                bool fence) const {
  if (wanted > kLastNamedToken) return Lead::kTooFar;
  const uint64_t most = std::max(static_cast<uint64_t>(wall_us), floor_) + max_lead_us_;
  if (fence || wanted <= std::max(most, counter(key) + 1)) {
    return may_need_room(key, wanted, wall_us) ? Lead::kUndetermined : Lead::kFine;
  }
  if (wanted > std::max(most, largest_ + 1) && events_.empty()) return Lead::kTooFar;
  return Lead::kUndetermined;
}

TokenBook::Lead TokenBook::lead(const std::vector<KeyId>& keys, int64_t wall_us) const {
  uint64_t token = 0;
  for (const KeyId& key : keys) token = std::max(token, counter(key.second) + 1);
  const bool refused = keys.size() > 1 && std::ranges::any_of(keys, [&](const KeyId& key) {
                         return may_need_room(key.second, token, wall_us);
                       });
  return refused ? Lead::kUndetermined : Lead::kFine;
}

// Whether the token may be so far ahead of the clock that the key needs a counter of its own, which a long
// key cannot have. The engine then refuses the token.
bool TokenBook::may_need_room(const std::string& key, uint64_t token, int64_t wall_us) const {
  const uint64_t near =
      static_cast<uint64_t>(wall_us) + std::min<uint64_t>(max_lead_us_ / 2, 3'600'000'000);
  return key.size() > Tokens::kMaxAheadKeyBytes && token > near;
}

// Returns the lower bound of an event's token. Tokens of one key grow from event to event. Keys of the
// same name in several databases share a counter, but the order of their events at one moment is
// unspecified. Only earlier moments of these keys count.
uint64_t TokenBook::lowest(const Event& event) const {
  uint64_t out = event.at_least;
  for (const KeyId& key : event.keys) {
    if (event.fence && event.old) continue;
    out = std::max(out, counter(key.second) + 1);
    if (latest_.contains(key)) out = std::max(out, latest_.at(key) + 1);
  }
  return out;
}

std::string TokenBook::settle(const Event& event, uint64_t highest) {
  const bool seen = event.box->known;  // false: its client left before the reply
  const uint64_t token = seen ? event.box->value : lowest(event);
  uint64_t least = lowest(event);
  if (event.fence && event.old && event.old->known) {
    least = highest = std::max(event.old->value, event.at_least);
  }
  for (const KeyId& key : event.keys) latest_[key] = std::max(latest_[key], token);
  if (seen) shown_.push_back(token);
  if (!seen) event.box->value = token;  // lower bound
  if (token >= least && token <= highest) return "";
  return "token " + std::to_string(token) + " of key '" + event.keys[0].second + "' is not between " +
         std::to_string(least) + " and " + std::to_string(highest);
}

std::string TokenBook::settle() {
  uint64_t highest = largest_;
  for (const Event& event : events_) highest = std::max(highest, event.at_least);
  highest += events_.size();
  std::string wrong;
  for (const Event& event : events_) {
    const std::string found = settle(event, highest);
    if (wrong.empty()) wrong = found;
  }
  for (const auto& [key, token] : latest_) {
    counters_[key.second] = std::max(counter(key.second), token);
    largest_ = std::max(largest_, token);
  }
  if (std::any_of(events_.begin(), events_.end(), [](const Event& e) { return !e.box->known; })) {
    largest_ = std::max(largest_, highest);
  }
  events_.clear();
  if (shown_.size() > 200) shown_.erase(shown_.begin(), shown_.begin() + 100);
  return wrong;
}

}  // namespace holdfast::simulation
