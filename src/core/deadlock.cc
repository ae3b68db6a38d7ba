// Deadlocks in the wait-for graph. An owner waits for holders in its way and for those queued before it.
// With counted locks not every holder has to go, so this is a reduction of an AND-OR graph (as in Knapp,
// "Deadlock detection in distributed databases", 1987): gather all who may wait for the asking owner in the
// end, suppose them all stuck, and release whoever could go on all the same, until nobody can. Those
// outside are not stuck, as there was no deadlock before. Usually nobody waits for the asker, and it ends
// at once. A search has a limit of steps; one that reaches it has found nothing. Large ones are rare, and
// who asks for them again and again is not to keep the others waiting: so steps are saved up by time.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/locks.h"

namespace holdfast {

namespace {

// Each search may take the least, and more where it has been saved: at most 10,000 in all, about two
// milliseconds and enough for 1,500 who wait, or for a hundred keys that a hundred owners share.
constexpr size_t kLeastSteps = 1000;
constexpr size_t kMostSaved = 9000;
constexpr int64_t kSavedPerMs = 20;

void save_steps(SearchSteps& steps, TimeMs now) {
  const int64_t passed_ms = std::clamp((now - steps.counted).count, int64_t{0}, int64_t{kMostSaved});
  steps.counted = now;
  steps.saved = std::min(steps.saved + static_cast<size_t>(passed_ms * kSavedPerMs), kMostSaved);
}

class StuckSearch {
 public:
  StuckSearch(Turn& t, const WaitQueue* asked, std::string_view asker, Capacity capacity, bool upgrade)
      : t_(t),
        asked_(asked),
        asker_(asker),
        capacity_(capacity),
        upgrade_(upgrade),
        most_steps_(kLeastSteps + t.s.search_steps.saved) {}

  bool closes_cycle() {
    stick(asker_);
    for (size_t done = 0; done < gathered_.size() && !given_up();) gather_behind(gathered_[done++]);
    if (gathered_.size() == 1) return false;
    while (!given_up() && stuck_.contains(asker_) && release_some()) {
    }
    return !given_up() && stuck_.contains(asker_);
  }
  bool given_up() const { return steps_ > most_steps_; }
  size_t steps() const { return steps_; }

 private:
  void stick(std::string_view owner) {
    if (stuck_.insert(owner).second) gathered_.push_back(owner);
  }

  // Gathers whom an owner may keep waiting: behind its own waits, and at the keys that it holds.
  void gather_behind(std::string_view owner) {
    for (const Waiter* w : t_.s.queues.of_owner(owner)) {
      if (++steps_; given_up()) return;
      if (is_leaving(w)) continue;
      for (auto it = std::next(std::list<Waiter*>::const_iterator(w->place)); it != w->queue->waiters.end();
           ++it) {
        if (!gathered_to_.insert(*it).second) break;  // the rest of the queue has been gathered
        stick((*it)->owner);
        if (++steps_; given_up()) return;
      }
    }
    for_each_held(owner, [&](const WaitQueue* q, Capacity capacity) {
      StuckHolders& holders = stuck_holders_[q];
      if (holders.count == 0) stick_all(q->waiters);
      holders.add(capacity);
    });
  }

  void stick_all(const std::list<Waiter*>& waiters) {
    for (const Waiter* w : waiters) {
      stick(w->owner);
      if (++steps_; given_up()) return;
    }
  }

  // Calls f(queue, capacity) for the contended keys that the owner holds.
  template <class F>
  void for_each_held(std::string_view owner, F f) {
    for (const WaitQueue* q : t_.s.queues.held_by(owner)) {
      f(q, kExclusive);
      if (++steps_; given_up()) return;
    }
    if (!t_.s.holders.any(owner)) return;
    for (const WaitQueue* q : t_.s.queues.shared()) {
      if (++steps_; given_up()) return;
      const Keyspace::Found found = t_.keys(q->db).find(q->key());
      if (const Holder* h = lock_body_of(*found)->find(owner)) f(q, h->capacity);
    }
  }

  // In the order in which they were gathered, the asker first, so that what one release makes possible
  // mostly follows in one pass.
  bool release_some() {
    bool any = false;
    for (const std::string_view owner : gathered_) {
      if (++steps_; given_up()) break;
      if (!stuck_.contains(owner) || !can_go_on(owner)) continue;
      stuck_.erase(owner);
      if (owner == asker_) return true;
      for_each_held(owner,
                    [&](const WaitQueue* q, Capacity capacity) { stuck_holders_[q].remove(capacity); });
      any = true;
    }
    return any;
  }

  bool can_go_on(std::string_view owner) {
    for (const Waiter* w : t_.s.queues.of_owner(owner)) {
      if (++steps_; given_up()) return false;
      if (is_leaving(w)) continue;
      if (kept_out(w->queue, owner, w->capacity) || stuck_before(w->queue, owner, w->upgrade)) return false;
    }
    return owner != asker_ ||
           (!kept_out(asked_, asker_, capacity_) && !stuck_before(asked_, asker_, upgrade_));
  }

  // Its wait is as good as over.
  bool is_leaving(const Waiter* w) const { return t_.s.conns.at(w->conn).leaving; }

  // Whether a request would not be admitted though all holders that can go had gone.
  bool kept_out(const WaitQueue* q, std::string_view owner, Capacity capacity) const {
    const auto it = stuck_holders_.find(q);
    if (it == stuck_holders_.end() || it->second.count == 0) return false;
    size_t others = it->second.count;
    if (stuck_.contains(owner) && holds(q, owner)) --others;
    return others > 0 && others + 1 > std::min(capacity, it->second.capacities.begin()->first).count;
  }

  bool holds(const WaitQueue* q, std::string_view owner) const {
    if (!q->shared) return q->holder == owner;
    return lock_body_of(*t_.keys(q->db).find(q->key()))->find(owner) != nullptr;
  }

  // Whether somebody is stuck before an owner's place in a queue: that of its first request there, as later
  // ones are answered with it, or else the end.
  bool stuck_before(const WaitQueue* q, std::string_view owner, bool upgrade) {
    // The asker's upgrade, not in the queue yet, would stand at its head.
    if (q == asked_ && upgrade_ && !upgrade && owner != asker_ && stuck_.contains(asker_)) return true;
    const Waiter* first = first_stuck(q);
    return first != nullptr && first->owner != owner && (first->upgrade || !upgrade);
  }

  // Null: nobody. While owners are released the place only goes on, so that no queue is searched twice.
  const Waiter* first_stuck(const WaitQueue* q) {
    auto& place = first_stuck_.try_emplace(q, q->waiters.begin()).first->second;
    for (; place != q->waiters.end(); ++place, ++steps_) {
      if (stuck_.contains((*place)->owner) && !is_leaving(*place)) return *place;
    }
    return nullptr;
  }

  // How many holders of a key are stuck, and with which capacities.
  struct StuckHolders {
    void add(Capacity c) {
      ++capacities[c];
      ++count;
    }
    void remove(Capacity c) {
      if (--capacities[c] == 0) capacities.erase(c);
      --count;
    }
    absl::btree_map<Capacity, size_t> capacities;
    size_t count = 0;
  };

  Turn& t_;
  const WaitQueue* asked_;
  std::string_view asker_;
  Capacity capacity_;
  bool upgrade_;
  absl::flat_hash_set<std::string_view> stuck_;
  std::vector<std::string_view> gathered_;
  absl::flat_hash_set<const Waiter*> gathered_to_;
  absl::flat_hash_map<const WaitQueue*, StuckHolders> stuck_holders_;
  absl::flat_hash_map<const WaitQueue*, std::list<Waiter*>::const_iterator> first_stuck_;
  size_t steps_ = 0;
  size_t most_steps_;
};

}  // namespace

bool would_deadlock(Turn& t, const WaitQueue* q, std::string_view owner, Capacity capacity, bool upgrade) {
  SearchSteps& steps = t.s.search_steps;
  save_steps(steps, t.now.mono);
  StuckSearch search(t, q, owner, capacity, upgrade);
  const bool closes_cycle = search.closes_cycle();
  steps.saved -= std::min(steps.saved, search.steps() - std::min(search.steps(), kLeastSteps));
  if (search.given_up()) ++t.s.stats.deadlock_searches_given_up;
  return closes_cycle;
}

}  // namespace holdfast
