// Live leases by id, and a bounded number of ended ones.
#include "core/state/lease_table.h"

#include <algorithm>
#include <cassert>

namespace holdfast {

LiveLease* LeaseTable::find(std::string_view id) const {
  const auto it = live_.find(id);
  return it == live_.end() ? nullptr : it->second.get();
}

const LeaseOutcome* LeaseTable::outcome(std::string_view id) const {
  const auto it = outcomes_.find(id);
  return it == outcomes_.end() ? nullptr : &it->second;
}

LiveLease* LeaseTable::add(std::unique_ptr<LiveLease> lease) {
  assert(find(lease->id) == nullptr);
  outcomes_.erase(lease->id);
  lease->serial = ++last_serial_;
  LiveLease* added = lease.get();
  id_bytes_ += added->id.size();
  live_.emplace(added->id, std::move(lease));
  return added;
}

LiveLease* LeaseTable::restore(std::unique_ptr<LiveLease> lease) {
  assert(find(lease->id) == nullptr);
  outcomes_.erase(lease->id);
  last_serial_ = std::max(last_serial_, lease->serial);
  LiveLease* restored = lease.get();
  id_bytes_ += restored->id.size();
  live_.emplace(restored->id, std::move(lease));
  return restored;
}

void LeaseTable::end(LiveLease* lease, LeaseState state) {
  assert(!lease->armed());
  remember(lease->id, state, lease->token);
  forget(lease);
}

void LeaseTable::remember(std::string_view id, LeaseState state, Token token) {
  const uint64_t serial = ++last_serial_;
  outcomes_[std::string(id)] = {state, token, serial};
  order_.emplace_back(serial, id);
  id_bytes_ += 2 * id.size();
  while (order_.size() > memory_) {
    const auto it = outcomes_.find(order_.front().second);
    // If the id was used again, it has a younger outcome, or none.
    if (it != outcomes_.end() && it->second.serial == order_.front().first) outcomes_.erase(it);
    id_bytes_ -= 2 * order_.front().second.size();
    order_.pop_front();
  }
}

}  // namespace holdfast
