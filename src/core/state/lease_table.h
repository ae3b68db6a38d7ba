// Leases: the keys that each lease created, and the outcomes of ended leases. Owns both. Knows no keyspace:
// leases.cc checks whether the keys still belong to the lease.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/timers.h"
#include "core/base/types.h"

namespace holdfast {

enum class LeaseState : uint8_t { kGranted, kConfirmed, kCancelled, kExpired };

// A live lease. Its timer fires when the lease expires.
struct LiveLease : Timer {
  LiveLease() : Timer(TimerKind::kLeaseEnd) {}
  std::string id;
  DbIndex db = 0;
  std::vector<std::string> keys;
  uint64_t serial = 0;  // assigned by the table; never used twice
  Token token;
  DurationMs ttl;
};

// The record of an ended lease: how it ended, and its token.
struct LeaseOutcome {
  LeaseState state = LeaseState::kExpired;
  Token token;
  uint64_t serial = 0;
};

class LeaseTable {
 public:
  explicit LeaseTable(size_t memory) : memory_(memory) {}

  LiveLease* find(std::string_view id) const;
  const LeaseOutcome* outcome(std::string_view id) const;
  // Adds a lease. The id must not be in use. Forgets the outcome of an earlier lease with this id.
  LiveLease* add(std::unique_ptr<LiveLease> lease);
  // Adds a restored lease with its own serial. The id must not be in use.
  LiveLease* restore(std::unique_ptr<LiveLease> lease);
  // Removes a lease without an outcome. Its timer must be disarmed.
  void forget(LiveLease* lease) {
    id_bytes_ -= lease->id.size();
    live_.erase(live_.find(lease->id));
  }
  // Restores the outcome of an ended lease.
  void remember(std::string_view id, LeaseState state, Token token);
  // Ends a lease and remembers its outcome. Its timer must be disarmed.
  void end(LiveLease* lease, LeaseState state);

  size_t size() const { return live_.size(); }
  size_t remembered() const { return outcomes_.size(); }
  uint64_t id_bytes() const { return id_bytes_; }  // bytes of the ids of all live and ended leases
  template <class F>
  void for_each(F f) const {
    for (const auto& [id, lease] : live_) f(*lease);
  }

  // Calls f(id, outcome) for each ended lease, oldest first. If an id was used again, only its younger
  // outcome counts.
  template <class F>
  void for_each_outcome(F f) const {
    for (const auto& [serial, id] : order_) {
      const auto it = outcomes_.find(id);
      if (it != outcomes_.end() && it->second.serial == serial) f(id, it->second);
    }
  }

 private:
  size_t memory_;
  StringMap<std::unique_ptr<LiveLease>> live_;
  StringMap<LeaseOutcome> outcomes_;
  std::deque<std::pair<uint64_t, std::string>> order_;  // ended leases, oldest first; by serial and id
  uint64_t last_serial_ = 0;
  uint64_t id_bytes_ = 0;
};

}  // namespace holdfast
