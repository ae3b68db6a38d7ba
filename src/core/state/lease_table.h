// Leases: which keys a lease put, and the outcomes of ended ones. Owns both. Knows no keyspace: whether the
// keys are still the lease's own is asked in leases.cc.
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

// A granted lease. Its timer is its expiry.
struct LiveLease : Timer {
  LiveLease() : Timer(TimerKind::kLeaseEnd) {}
  std::string id;
  DbIndex db = 0;
  std::vector<std::string> keys;
  uint64_t serial = 0;  // given by the table; never used twice
  Token token;
  DurationMs ttl;
};

// What is remembered of an ended lease.
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
  // The id must not be in use. Its outcome of an earlier life is forgotten.
  LiveLease* add(std::unique_ptr<LiveLease> lease);
  // Puts a lease back under its own serial. The id must not be in use.
  LiveLease* restore(std::unique_ptr<LiveLease> lease);
  // Removes a lease, whose timer must be disarmed, as if it had never been.
  void forget(LiveLease* lease) {
    id_bytes_ -= lease->id.size();
    live_.erase(live_.find(lease->id));
  }
  // Puts back how a lease ended.
  void remember(std::string_view id, LeaseState state, Token token);
  // Ends a lease, whose timer must be disarmed, and remembers how.
  void end(LiveLease* lease, LeaseState state);

  size_t size() const { return live_.size(); }
  size_t remembered() const { return outcomes_.size(); }
  uint64_t id_bytes() const { return id_bytes_; }  // of all that is remembered or alive
  template <class F>
  void for_each(F f) const {
    for (const auto& [id, lease] : live_) f(*lease);
  }

  // Oldest first; of an id that was used again the younger only.
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
