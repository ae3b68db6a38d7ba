// Deadlocks in the wait-for graph. An owner waits for holders in its way and for those queued before it.
// With counted locks not every holder has to go, so this is a reduction of an AND-OR graph (as in Knapp,
// "Deadlock detection in distributed databases", 1987): gather all who may wait for the asking owner in the
// end, suppose them all stuck, and release whoever could go on all the same, until nobody can. Those
// outside are not stuck, as there was no deadlock before. Usually nobody waits for the asker, and it ends
// at once.
#include <absl/container/btree_map.h>
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
  StuckSearch(Turn& t, const WaitQueue* asked, std::string_view asker, Capacity capacity, bool upgrade)
      : t_(t), asked_(asked), asker_(asker), capacity_(capacity), upgrade_(upgrade) {}

  bool closes_cycle() {
    stick(asker_);
    for (size_t done = 0; done < gathered_.size();) gather_behind(gathered_[done++]);
    if (gathered_.size() == 1) return false;
    while (release_some()) {
    }
    return stuck_.contains(asker_);
  }

 private:
  void stick(std::string_view owner) {
    if (stuck_.insert(owner).second) gathered_.push_back(owner);
  }

  // Gathers whom an owner may keep waiting: behind its own waits, and at the keys that it holds.
  void gather_behind(std::string_view owner) {
    for (const Waiter* w : t_.s.queues.of_owner(owner)) {
      for (auto it = std::next(std::list<Waiter*>::const_iterator(w->place)); it != w->queue->waiters.end();
           ++it) {
        if (gathered_to_.contains(*it)) break;  // the rest of the queue has been gathered
        gathered_to_.insert(*it);
        stick((*it)->owner);
      }
    }
    for_each_held(owner, [&](const WaitQueue* q, Capacity capacity) {
      ++stuck_holders_[q][capacity];
      for (const Waiter* w : q->waiters) stick(w->owner);
    });
  }

  // Calls f(queue, capacity) for the contended keys that the owner holds.
  template <class F>
  void for_each_held(std::string_view owner, F f) const {
    for (const WaitQueue* q : t_.s.queues.held_by(owner)) f(q, kExclusive);
    if (!t_.s.holders.any(owner)) return;
    for (const WaitQueue* q : t_.s.queues.shared()) {
      const Keyspace::Found found = t_.keys(q->db).find(q->key());
      if (const Holder* h = lock_body_of(*found)->find(owner)) f(q, h->capacity);
    }
  }

  // In the order in which they were gathered, so that what one release makes possible mostly follows in one
  // pass.
  bool release_some() {
    bool any = false;
    for (const std::string_view owner : gathered_) {
      if (!stuck_.contains(owner) || !can_go_on(owner)) continue;
      stuck_.erase(owner);
      for_each_held(owner, [&](const WaitQueue* q, Capacity capacity) {
        auto& holders = stuck_holders_[q];
        if (--holders[capacity] == 0) holders.erase(capacity);
      });
      any = true;
    }
    return any;
  }

  bool can_go_on(std::string_view owner) const {
    for (const Waiter* w : t_.s.queues.of_owner(owner)) {
      if (kept_out(w->queue, owner, w->capacity) || stuck_before(w->queue, owner, w->upgrade)) return false;
    }
    return owner != asker_ ||
           (!kept_out(asked_, asker_, capacity_) && !stuck_before(asked_, asker_, upgrade_));
  }

  // Whether a request would not be admitted though all holders that can go had gone.
  bool kept_out(const WaitQueue* q, std::string_view owner, Capacity capacity) const {
    const auto it = stuck_holders_.find(q);
    if (it == stuck_holders_.end() || it->second.empty()) return false;
    size_t others = 0;
    for (const auto& [c, count] : it->second) others += count;
    if (stuck_.contains(owner) && holds(q, owner)) --others;
    return others > 0 && others + 1 > std::min(capacity, it->second.begin()->first).count;
  }

  bool holds(const WaitQueue* q, std::string_view owner) const {
    if (!q->shared) return q->holder == owner;
    return lock_body_of(*t_.keys(q->db).find(q->key()))->find(owner) != nullptr;
  }

  // Whether somebody is stuck before an owner's place in a queue: that of its first request there, as later
  // ones are answered with it, or else the end.
  bool stuck_before(const WaitQueue* q, std::string_view owner, bool upgrade) const {
    // The asker's upgrade, not in the queue yet, would stand at its head.
    if (q == asked_ && upgrade_ && !upgrade && owner != asker_ && stuck_.contains(asker_)) return true;
    for (const Waiter* w : q->waiters) {
      if (w->owner == owner || (upgrade && !w->upgrade)) return false;
      if (stuck_.contains(w->owner)) return true;
    }
    return false;
  }

  Turn& t_;
  const WaitQueue* asked_;
  std::string_view asker_;
  Capacity capacity_;
  bool upgrade_;
  absl::flat_hash_set<std::string_view> stuck_;
  std::vector<std::string_view> gathered_;
  absl::flat_hash_set<const Waiter*> gathered_to_;
  absl::flat_hash_map<const WaitQueue*, absl::btree_map<Capacity, size_t>> stuck_holders_;
};

}  // namespace

bool would_deadlock(Turn& t, const WaitQueue* q, std::string_view owner, Capacity capacity, bool upgrade) {
  return StuckSearch(t, q, owner, capacity, upgrade).closes_cycle();
}

}  // namespace holdfast
