// Timers that must fire in exact order: timeouts of waiters, ends of sessions and leases, and the next
// change of a key that has waiters. O(log n). Entries without waiters are in the timing wheel of their
// keyspace instead. Owns no timer; a timer must be cancelled before it is destroyed.
#pragma once

#include <absl/container/btree_set.h>

#include <cassert>
#include <optional>

#include "core/base/types.h"

namespace holdfast {

// The order in which timers of the same millisecond fire. A lock that is released at a waiter's timeout is
// still granted to that waiter.
enum class TimerKind : uint8_t {
  kKeyChange,
  kSessionEnd,
  kLeaseEnd,
  kWaitEnd,
  kPlacesEnd,
  kReturnWaits,
};

class Timers;

class Timer {
 public:
  explicit Timer(TimerKind kind) : kind_(kind) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  TimerKind kind() const { return kind_; }
  TimeMs at() const { return at_; }
  bool armed() const { return serial_ != 0; }

 protected:
  ~Timer() { assert(!armed()); }

 private:
  friend class Timers;
  TimeMs at_ = kNever;
  uint64_t serial_ = 0;  // of two timers with equal time and kind, the one armed first fires first
  TimerKind kind_;
};

class Timers {
 public:
  // Arms or re-arms a timer; kNever cancels it.
  void set(Timer* t, TimeMs at) {
    if (t->armed() && t->at_ == at) return;
    cancel(t);
    if (at == kNever) return;
    t->at_ = at;
    t->serial_ = ++last_serial_;
    order_.insert(t);
  }
  void cancel(Timer* t) {
    if (!t->armed()) return;
    order_.erase(t);
    t->serial_ = 0;
    t->at_ = kNever;
  }
  // Returns the next timer that is due at `now`, disarmed; null if there is none.
  Timer* take_due(TimeMs now) {
    if (order_.empty() || !is_due((*order_.begin())->at_, now)) return nullptr;
    Timer* t = *order_.begin();
    order_.erase(order_.begin());
    t->serial_ = 0;
    return t;
  }
  bool any_due(TimeMs now) const { return !order_.empty() && is_due((*order_.begin())->at_, now); }
  std::optional<TimeMs> next_due() const {
    return order_.empty() ? std::nullopt : std::optional((*order_.begin())->at_);
  }
  size_t size() const { return order_.size(); }

 private:
  struct EarlierDeadline {
    bool operator()(const Timer* a, const Timer* b) const {
      if (a->at_ != b->at_) return a->at_ < b->at_;
      if (a->kind_ != b->kind_) return a->kind_ < b->kind_;
      return a->serial_ < b->serial_;
    }
  };
  absl::btree_set<Timer*, EarlierDeadline> order_;
  uint64_t last_serial_ = 0;
};

}  // namespace holdfast
