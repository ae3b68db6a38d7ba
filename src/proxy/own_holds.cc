#include "proxy/own_holds.h"

namespace holdfast::proxy {

void OwnHolds::put(OwnHold hold, TimeMs now) {
  erase_ended(now);
  if (const auto old = holds_.find(hold.key); old != holds_.end()) erase(old);
  ends_.emplace(hold.end, hold.key);
  std::string key = hold.key;
  holds_.emplace(std::move(key), std::move(hold));
  if (holds_.size() > kMost) erase(holds_.find(ends_.begin()->second));
}

const OwnHold* OwnHolds::find(const std::string& key, TimeMs now) {
  erase_ended(now);
  const auto found = holds_.find(key);
  return found == holds_.end() ? nullptr : &found->second;
}

const OwnHold* OwnHolds::find(const std::string& key, const std::string& owner, TimeMs now) {
  const OwnHold* hold = find(key, now);
  return hold != nullptr && hold->owner == owner ? hold : nullptr;
}

void OwnHolds::forget(const std::string& key, const std::string& owner) {
  const auto found = holds_.find(key);
  if (found != holds_.end() && found->second.owner == owner) erase(found);
}

void OwnHolds::erase(Holds::iterator hold) {
  ends_.erase({hold->second.end, hold->first});
  holds_.erase(hold);
}

void OwnHolds::erase_ended(TimeMs now) {
  while (!ends_.empty() && is_due(ends_.begin()->first, now)) erase(holds_.find(ends_.begin()->second));
}

}  // namespace holdfast::proxy
