// The bounds of fencing tokens, checked once they are known.
#include "token_book.h"

namespace holdfast::simulation {

TokenRef TokenBook::granted(const std::vector<std::string>& keys, uint64_t hint) {
  auto box = std::make_shared<TokenBox>();
  events_.push_back({keys, box, hint, false, nullptr});
  return box;
}

TokenRef TokenBook::fenced(const std::string& key, const TokenRef& old, uint64_t given) {
  auto box = std::make_shared<TokenBox>();
  if (old && old->known) *box = {true, std::max(old->value, given)};
  events_.push_back({{key}, box, given, true, old});
  return box;
}

TokenBook::Lead TokenBook::lead(const std::string& key, uint64_t wanted, int64_t wall_us) const {
  const auto wall = static_cast<uint64_t>(wall_us);
  if (wanted <= std::max(wall, counter(key)) + max_lead_us_) return Lead::kFine;
  if (wanted > std::max(wall, largest_) + max_lead_us_ && events_.empty()) return Lead::kTooFar;
  return Lead::kNobodyKnows;
}

// Whom it was for has gone before it could be told: all that is known are its bounds.
void TokenBook::note_unseen(const Event& event) {
  largest_ = std::max(largest_ + 1, event.at_least);
  for (const std::string& key : event.keys) counters_[key] = std::max(counter(key) + 1, event.at_least);
}

std::string TokenBook::settle(const Event& event) {
  if (!event.box->known) return note_unseen(event), "";
  const uint64_t token = event.box->value;
  uint64_t lowest = event.at_least;
  uint64_t highest = std::max(largest_ + 1, event.at_least);
  if (event.fence && event.old) {
    lowest = highest = std::max(event.old->value, event.at_least);
  } else {
    for (const std::string& key : event.keys) lowest = std::max(lowest, counter(key) + 1);
  }
  for (const std::string& key : event.keys) counters_[key] = std::max(counter(key), token);
  largest_ = std::max(largest_, token);
  shown_.push_back(token);
  if (token >= lowest && token <= highest) return "";
  return "token " + std::to_string(token) + " of key '" + event.keys[0] + "' is not between " +
         std::to_string(lowest) + " and " + std::to_string(highest);
}

std::string TokenBook::settle() {
  std::string wrong;
  for (const Event& event : events_) {
    const std::string found = settle(event);
    if (wrong.empty()) wrong = found;
  }
  events_.clear();
  if (shown_.size() > 200) shown_.erase(shown_.begin(), shown_.begin() + 100);
  return wrong;
}

}  // namespace holdfast::simulation
