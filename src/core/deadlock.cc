// Deadlocks in the wait-for graph. An owner waits for holders in its way and for those queued before it.
// With counted locks not every holder has to go: a wait is stuck only if the holders that never will go
// suffice to keep it out. So this is a reduction of an AND-OR graph, done backwards: suppose the owner
// stuck, gather whom that sticks, and see whether the owner's own request is kept out by them. The graph
// never had a cycle before, so this finds exactly those that the request would close. Usually nobody waits
// for the owner, and it ends at once.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/locks.h"

namespace holdfast {

namespace {

class StuckSearch {
 public:
  StuckSearch(Turn& t, const WaitQueue* asked, std::string_view asker)
      : t_(t), asked_(asked), asker_(asker) {}

  bool closes_cycle(Capacity capacity, bool upgrade) {
    stick(asker_);
    while (!pending_.empty()) {
      const std::string_view owner = pending_.back();
      pending_.pop_back();
      spread(owner);
    }
    return kept_out(asked_, asker_, capacity) || stuck_before_end(upgrade);
  }

 private:
  // Of the holders of a key: how many are stuck, and the smallest of their capacities.
  struct StuckHolders {
    size_t count = 0;
    Capacity tightest = kShared;
  };

  void stick(std::string_view owner) {
    if (stuck_.insert(owner).second) pending_.push_back(owner);
  }

  // Sticks whom a stuck owner keeps waiting: behind its own waits, and at the keys that it holds.
  void spread(std::string_view owner) {
    for (const Waiter* w : t_.s.queues.of_owner(owner)) {
      // The asker's earlier requests for the same key are answered together with the new one.
      if (w->queue == asked_ && owner == asker_) continue;
      stick_from(w->queue, w->rank + 1);
    }
    for (const WaitQueue* q : t_.s.queues.held_by(owner)) add_holder(q, kExclusive);
    for (const WaitQueue* q : t_.s.queues.shared()) {
      const Keyspace::Found f = t_.keys(q->db).find(q->key());
      if (const Holder* h = lock_body_of(*f)->find(owner)) add_holder(q, h->capacity);
    }
  }

  void add_holder(const WaitQueue* q, Capacity capacity) {
    StuckHolders& holders = holders_[q];
    ++holders.count;
    holders.tightest = std::min(holders.tightest, capacity);
    for (const Waiter* w : q->waiters) {
      if (w->rank >= stuck_rank(q)) return;
      if (!kept_out(q, w->owner, w->capacity)) continue;
      stick_from(q, w->rank);
      return;
    }
  }

  uint64_t stuck_rank(const WaitQueue* q) const {
    const auto it = stuck_from_.find(q);
    return it == stuck_from_.end() ? UINT64_MAX : it->second;
  }

  // All waiters of a queue from a rank on are stuck.
  void stick_from(const WaitQueue* q, uint64_t rank) {
    const uint64_t known = stuck_rank(q);
    if (rank >= known) return;
    stuck_from_[q] = rank;
    for (auto it = q->waiters.rbegin(); it != q->waiters.rend() && (*it)->rank >= rank; ++it) {
      if ((*it)->rank < known) stick((*it)->owner);
    }
  }

  // Whether a request would not be admitted though all holders that can go had gone.
  bool kept_out(const WaitQueue* q, std::string_view owner, Capacity capacity) const {
    const auto it = holders_.find(q);
    if (it == holders_.end()) return false;
    size_t others = it->second.count;
    if (stuck_.contains(owner) && holds(q, owner)) --others;
    return others > 0 && others + 1 > std::min(capacity, it->second.tightest).count;
  }

  bool holds(const WaitQueue* q, std::string_view owner) const {
    if (!q->shared) return q->holder == owner;
    return lock_body_of(*t_.keys(q->db).find(q->key()))->find(owner) != nullptr;
  }

  // Whether somebody before the new request's place is stuck.
  bool stuck_before_end(bool upgrade) const {
    const uint64_t from = stuck_rank(asked_);
    if (from == UINT64_MAX) return false;
    return std::ranges::any_of(asked_->waiters, [&](const Waiter* w) {
      return (!upgrade || w->upgrade) && w->owner != asker_ && w->rank >= from;
    });
  }

  Turn& t_;
  const WaitQueue* asked_;
  std::string_view asker_;
  absl::flat_hash_set<std::string_view> stuck_;
  std::vector<std::string_view> pending_;
  absl::flat_hash_map<const WaitQueue*, StuckHolders> holders_;
  absl::flat_hash_map<const WaitQueue*, uint64_t> stuck_from_;
};

}  // namespace

bool would_deadlock(Turn& t, const WaitQueue* q, std::string_view owner, Capacity capacity, bool upgrade) {
  return StuckSearch(t, q, owner).closes_cycle(capacity, upgrade);
}

}  // namespace holdfast
