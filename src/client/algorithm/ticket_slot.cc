#include "client/algorithm/ticket_slot.h"

#include <algorithm>

namespace holdfast::client {

void OverList::learn(size_t server, const std::vector<std::string>& owners) {
  std::for_each(owners.rbegin(), owners.rend(),
                [&](const std::string& owner) { learn_one(server, owner); });
}

void OverList::learn_one(size_t server, const std::string& owner) {
  const std::string_view slot = slot_of(owner);
  if (slot == own_) return;
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return slot_of(e.owner) == slot; });
  if (entry != entries_.end()) {
    const uint64_t known = attempt_of(entry->owner);
    const uint64_t told = attempt_of(owner);
    if (told == known) entry->known[server] = true;
    if (told <= known) return;
    entries_.erase(entry);
  }
  if (entries_.size() == kMostSlots) entries_.erase(entries_.begin());
  entries_.push_back({owner, std::vector<bool>(servers_, false)});
  entries_.back().known[server] = true;
}

// Older ones would only push newer ones out of the server's list.
std::vector<std::string> OverList::take_for(size_t server) {
  std::vector<std::string> owners;
  for (size_t n = entries_.size() - std::min(entries_.size(), kMostOver); n < entries_.size(); ++n) {
    if (entries_[n].known[server]) continue;
    entries_[n].known[server] = true;
    owners.push_back(entries_[n].owner);
  }
  return owners;
}

void OverList::forget(size_t server) {
  for (Entry& entry : entries_) entry.known[server] = false;
}

}  // namespace holdfast::client
