// Deadlocks in the wait-for graph. An owner waits for the holders that exclude it and for the requests
// before its own. With counted and shared locks not every holder must release. So the search reduces an
// AND-OR graph (as in Knapp, "Deadlock detection in distributed databases", 1987). It gathers all owners
// that may in the end wait for the asking owner, and simulates their queues to the end. The simulated
// queues grant as the server does. An owner whose requests are all granted releases all its holds. If the
// asking owner still waits when nothing changes any more, its request would close a cycle. Owners outside
// the gathered set are not stuck, as there was no deadlock before. Usually no owner waits for the asking
// one, and the search ends at once. A search has a limit of steps; a search that reaches the limit reports
// no deadlock. Large searches are rare. A client that causes them repeatedly must not delay other clients:
// so the budget of steps grows with time.
#include "core/lock/deadlock.h"

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/votes.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/search_steps.h"
#include "core/state/stats.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

// Each search may take kLeastSteps, and the saved steps in addition: at most 10,000 in all. This takes
// about 2 ms and is enough for 1,500 waiters, or for 100 keys that 100 owners share.
constexpr size_t kLeastSteps = 1000;
constexpr size_t kMostSaved = 9000;
constexpr int64_t kSavedPerMs = 20;

void save_steps(SearchSteps& steps, TimeMs now) {
  const int64_t passed_ms = std::clamp((now - steps.counted).count, int64_t{0}, int64_t{kMostSaved});
  steps.counted = now;
  steps.saved = std::min(steps.saved + static_cast<size_t>(passed_ms * kSavedPerMs), kMostSaved);
}

// A request that waits, or (without `waiter`) the request that is checked now.
struct Ask {
  std::string_view owner;
  Capacity capacity;
  const Waiter* waiter = nullptr;
};

// The holders of a key in the simulation. Contains gathered owners only.
class SimulatedHolders {
 public:
  void set(std::string_view owner, Capacity capacity) {
    remove(owner);
    of_owner_.emplace(owner, capacity);
    ++capacities_[capacity];
  }
  void remove(std::string_view owner) {
    const auto it = of_owner_.find(owner);
    if (it == of_owner_.end()) return;
    const auto same = capacities_.find(it->second);
    if (--same->second == 0) capacities_.erase(same);
    of_owner_.erase(it);
  }
  const Capacity* find(std::string_view owner) const {
    const auto it = of_owner_.find(owner);
    return it == of_owner_.end() ? nullptr : &it->second;
  }
  // The rule of admission, as in acquire.cc.
  bool admit(const Ask& ask) const {
    const Capacity* own = find(ask.owner);
    if (own != nullptr && ask.capacity >= *own) return true;
    const size_t others = of_owner_.size() - (own != nullptr ? 1 : 0);
    if (others == 0) return true;
    auto tightest = capacities_.begin();
    if (own != nullptr && tightest->first == *own && tightest->second == 1) ++tightest;
    return others + 1 <= std::min(ask.capacity, tightest->first).count;
  }

 private:
  absl::flat_hash_map<std::string_view, Capacity> of_owner_;
  absl::btree_map<Capacity, size_t> capacities_;
};

// A queue in the simulation: the requests before `plain` have been granted, or were moved to the upgrades.
struct SimulatedQueue {
  const WaitQueue* queue = nullptr;
  SimulatedHolders holders;
  std::deque<Ask> upgrades;
  WaitQueue::Waiters::const_iterator plain;
};

class DeadlockSearch {
 public:
  DeadlockSearch(Context& ctx, const WaitQueue* asked, const NewWait& wait)
      : ctx_(ctx),
        asked_(asked),
        ask_{wait.owner, wait.capacity},
        upgrade_(wait.upgrade),
        place_(wait.place),
        most_steps_(kLeastSteps + ctx.s.search_steps.saved) {}

  bool closes_cycle() {
    gather(ask_.owner);
    gather_all(*asked_, place_);
    for (size_t done = 0; done < gathered_.size() && !given_up(); ++done) gather_behind(gathered_[done]);
    if (gathered_.size() == 1 || given_up()) return false;
    begin_simulation();
    while (!moving_.empty() && !given_up() && !asker_released_) {
      SimulatedQueue* next = moving_.back();
      moving_.pop_back();
      serve(*next);
    }
    return !given_up() && !asker_released_;
  }
  bool given_up() const { return steps_ > most_steps_; }
  size_t steps() const { return steps_; }

 private:
  struct Hold {
    const WaitQueue* queue;
    std::string_view owner;
    Capacity capacity;
  };

  void gather(std::string_view owner) {
    if (waits_.try_emplace(owner, 0).second) gathered_.push_back(owner);
  }

  // Gathers the owners that may wait for `owner`: those behind its own waits, and the waiters of the keys
  // that it holds.
  void gather_behind(std::string_view owner) {
    size_t waits = 0;
    for (const Waiter* w : ctx_.s.queues.of_owner(owner)) {
      if (++steps_; given_up()) return;
      if (is_out(w)) continue;
      ++waits;
      gather_all(*w->queue, w->rank);
    }
    waits_[owner] = waits;
    for_each_held(owner, [&](const WaitQueue* q, Capacity capacity) {
      gather_all(*q, {});
      holds_.push_back({q, owner, capacity});
    });
  }

  // Gathers the owners behind a place of a queue.
  void gather_all(const WaitQueue& q, const Rank& place) {
    for (auto it = q.waiters.upper_bound(place); it != q.waiters.end(); ++it) {
      if (!gathered_to_.insert(it->second).second) return;  // the rest of the queue has been gathered
      gather(it->second->owner);
      if (++steps_; given_up()) return;
    }
  }

  // Calls f(queue, capacity) for the contended keys that the owner holds.
  template <class F>
  void for_each_held(std::string_view owner, F f) {
    for (const WaitQueue* q : ctx_.s.queues.held_by(owner)) {
      f(q, kExclusive);
      if (++steps_; given_up()) return;
    }
    if (!ctx_.s.holders.any(owner)) return;
    for (const WaitQueue* q : ctx_.s.queues.shared()) {
      if (++steps_; given_up()) return;
      const Keyspace::Found found = ctx_.keys(q->db).find(q->key());
      if (type_of(*found) != EntryType::kLock) continue;  // its last holder has just left
      if (const Holder* h = lock_body_of(*found)->find(owner)) f(q, h->capacity);
    }
  }

  void begin_simulation() {
    for (const Hold& hold : holds_) hold_in(simulated(hold.queue), hold.owner, hold.capacity);
    for (const std::string_view owner : gathered_) {
      for (const Waiter* w : ctx_.s.queues.of_owner(owner)) {
        simulated(w->queue);
        ++steps_;
      }
    }
    ++waits_[ask_.owner];
    SimulatedQueue& asked = simulated(asked_);
    if (upgrade_) asked.upgrades.push_back(ask_);
    for (const std::string_view owner : gathered_) {
      if (waits_[owner] == 0) release(owner);
      ++steps_;
    }
  }

  // Returns the simulated queue. A new one gets its upgrades at once, and is scheduled to be served.
  SimulatedQueue& simulated(const WaitQueue* q) {
    std::unique_ptr<SimulatedQueue>& p = simulated_[q];
    if (p != nullptr) return *p;
    p = std::make_unique<SimulatedQueue>();
    p->queue = q;
    p->plain = q->begin_of(Rank::Group::kVotes);
    for (auto it = q->waiters.begin(); it != p->plain; ++it, ++steps_) {
      const Waiter* w = it->second;
      if (takes_part(w)) p->upgrades.push_back({w->owner, w->capacity, w});
    }
    moving_.push_back(p.get());
    return *p;
  }

  // Grants the requests that the holders admit, from the head on.
  void serve(SimulatedQueue& p) {
    for (std::optional<Ask> ask = head(p); ask && p.holders.admit(*ask) && !given_up(); ask = head(p)) {
      grant(p, *ask);
    }
  }

  std::optional<Ask> head(SimulatedQueue& p) {
    for (; !p.upgrades.empty(); p.upgrades.pop_front(), ++steps_) {
      if (!is_granted(p.upgrades.front())) return p.upgrades.front();
    }
    const bool asked_here = p.queue == asked_ && !upgrade_ && !moved_.contains(nullptr);
    for (; p.plain != p.queue->waiters.end(); ++p.plain, ++steps_) {
      if (asked_here && p.plain->first > place_) break;
      const Waiter* w = p.plain->second;
      if (takes_part(w) && !moved_.contains(w)) return Ask{w->owner, w->capacity, w};
    }
    return asked_here ? std::optional(ask_) : std::nullopt;
  }

  // Grants a request. The owner's later requests in the same queue are then granted too, or become
  // upgrades: see serve_owner() in waiting.cc.
  void grant(SimulatedQueue& p, const Ask& ask) {
    settle(p, ask);
    for (const Waiter* w : ctx_.s.queues.of_owner_in(ask.owner, p.queue)) {
      ++steps_;
      if (!is_out(w)) answer_with(p, {w->owner, w->capacity, w}, w->upgrade);
    }
    if (ask.owner == ask_.owner && p.queue == asked_) answer_with(p, ask_, upgrade_);
    if (waits_[ask.owner] == 0) release(ask.owner);
  }

  void settle(SimulatedQueue& p, const Ask& ask) {
    moved_.insert(ask.waiter);
    granted_.insert(ask.waiter);
    --waits_[ask.owner];
    hold_in(p, ask.owner, ask.capacity);
  }

  void hold_in(SimulatedQueue& p, std::string_view owner, Capacity capacity) {
    p.holders.set(owner, capacity);
    held_in_[owner].push_back(&p);
  }

  void answer_with(SimulatedQueue& p, const Ask& ask, bool upgrade) {
    if (is_granted(ask)) return;
    if (ask.capacity >= *p.holders.find(ask.owner)) {
      settle(p, ask);
    } else if (!upgrade && moved_.insert(ask.waiter).second) {
      p.upgrades.push_back(ask);
    }
  }

  void release(std::string_view owner) {
    if (owner == ask_.owner) asker_released_ = true;
    for (SimulatedQueue* p : held_in_[owner]) {
      p->holders.remove(owner);
      moving_.push_back(p);
      ++steps_;
    }
  }

  bool is_granted(const Ask& ask) const { return granted_.contains(ask.waiter); }
  // Whether a wait is part of the simulation. The wait of a disconnected client is not, nor one with a
  // vote: its owner is a holder.
  bool takes_part(const Waiter* w) const { return waits_.contains(w->owner) && !is_out(w); }
  bool is_out(const Waiter* w) const { return has_left(ctx_.s, *w) || w->has_vote(); }

  Context& ctx_;
  const WaitQueue* asked_;
  Ask ask_;
  bool upgrade_;
  Rank place_;
  std::vector<std::string_view> gathered_;
  absl::flat_hash_map<std::string_view, size_t> waits_;  // by gathered owner: requests not granted yet
  absl::flat_hash_set<const Waiter*> gathered_to_;
  std::vector<Hold> holds_;
  absl::flat_hash_map<const WaitQueue*, std::unique_ptr<SimulatedQueue>> simulated_;
  std::vector<SimulatedQueue*> moving_;         // to be served
  absl::flat_hash_set<const Waiter*> moved_;    // granted, or made upgrades; null: the checked request
  absl::flat_hash_set<const Waiter*> granted_;  // the granted ones only
  absl::flat_hash_map<std::string_view, std::vector<SimulatedQueue*>> held_in_;
  bool asker_released_ = false;
  size_t steps_ = 0;
  size_t most_steps_;
};

}  // namespace

bool would_deadlock(Context& ctx, const WaitQueue* q, const NewWait& wait) {
  SearchSteps& steps = ctx.s.search_steps;
  save_steps(steps, ctx.now.mono);
  DeadlockSearch search(ctx, q, wait);
  const bool closes_cycle = search.closes_cycle();
  steps.saved -= std::min(steps.saved, search.steps() - std::min(search.steps(), kLeastSteps));
  if (search.given_up()) ++ctx.s.stats.deadlock_searches_given_up;
  return closes_cycle;
}

}  // namespace holdfast
