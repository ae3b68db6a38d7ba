// The indexes of queues and waiters, changed together.
#include "core/wait_queue.h"

#include <cassert>

namespace holdfast {

WaitQueue* WaitQueues::find(DbIndex db, const Key& key) const {
  const auto it = queues_.find(std::pair(db, key));
  return it == queues_.end() ? nullptr : it->get();
}

WaitQueue* WaitQueues::find_or_make(DbIndex db, const Key& key) {
  if (WaitQueue* q = find(db, key)) return q;
  auto made = std::make_unique<WaitQueue>();
  made->db = db;
  made->key_bytes = key.bytes;
  made->key_hash = key.hash;
  return queues_.insert(std::move(made)).first->get();
}

void WaitQueues::destroy(WaitQueue* q) {
  assert(q->waiters.empty() && !q->armed() && !q->ready);
  note_holder(q, {}, false);
  queues_.erase(queues_.find(std::pair(q->db, q->key())));
}

// Upgrades stand together at the head, so that ranks below the others' first suffice for all of them.
void WaitQueues::put_in(Waiter* w) {
  WaitQueue* q = w->queue;
  w->rank = ++q->last_rank;
  if (w->upgrade) w->rank -= q->first_rank;
  w->place = q->waiters.insert(w->upgrade ? q->first_plain : q->waiters.end(), w);
  if (!w->upgrade && q->first_plain == q->waiters.end()) q->first_plain = w->place;
}

void WaitQueues::take_out(Waiter* w) {
  WaitQueue* q = w->queue;
  if (q->first_plain == w->place) ++q->first_plain;
  q->waiters.erase(w->place);
}

Waiter* WaitQueues::enqueue(WaitQueue* q, std::unique_ptr<Waiter> owned) {
  Waiter* w = owned.get();
  w->queue = q;
  put_in(w);
  w->arrival = ++last_arrival_;
  by_owner_[w->owner].insert(w);
  waiters_.emplace(w, std::move(owned));
  return w;
}

std::unique_ptr<Waiter> WaitQueues::remove(Waiter* w) {
  assert(!w->armed());
  take_out(w);
  const auto it = by_owner_.find(w->owner);
  it->second.erase(w);
  if (it->second.empty()) by_owner_.erase(it);
  return std::move(waiters_.extract(w).mapped());
}

void WaitQueues::promote(Waiter* w) {
  take_out(w);
  w->upgrade = true;
  put_in(w);
}

const OwnerWaits& WaitQueues::of_owner(std::string_view owner) const {
  static const OwnerWaits kNone;
  const auto it = by_owner_.find(owner);
  return it == by_owner_.end() ? kNone : it->second;
}

std::vector<Waiter*> WaitQueues::of_owner_in(std::string_view owner, const WaitQueue* q) const {
  const OwnerWaits& all = of_owner(owner);
  std::vector<Waiter*> there;
  for (auto it = all.lower_bound(ByQueue::Place(q, 0)); it != all.end() && (*it)->queue == q; ++it) {
    there.push_back(*it);
  }
  return there;
}

void WaitQueues::mark_ready(WaitQueue* q) {
  if (q->ready) return;
  q->ready = true;
  ready_.push_back(q);
}

WaitQueue* WaitQueues::take_ready() {
  if (ready_.empty()) return nullptr;
  WaitQueue* q = ready_.front();
  ready_.pop_front();
  return q;
}

void WaitQueues::note_holder(WaitQueue* q, std::string_view owner, bool shared) {
  if (q->shared != shared) {
    if (shared) {
      shared_.insert(q);
    } else {
      shared_.erase(q);
    }
    q->shared = shared;
  }
  if (q->holder == owner) return;
  if (!q->holder.empty()) {
    const auto it = held_by_.find(q->holder);
    it->second.erase(q);
    if (it->second.empty()) held_by_.erase(it);
  }
  q->holder = owner;
  if (!owner.empty()) held_by_[q->holder].insert(q);
}

const absl::flat_hash_set<WaitQueue*>& WaitQueues::held_by(std::string_view owner) const {
  static const absl::flat_hash_set<WaitQueue*> kNone;
  const auto it = held_by_.find(owner);
  return it == held_by_.end() ? kNone : it->second;
}

void WaitQueues::check_invariants() const {
  size_t waiting = 0;
  for (const auto& q : queues_) {
    uint64_t rank = 0;
    bool upgrades = true;
    for (const Waiter* w : q->waiters) {
      assert(w->queue == q.get() && w->rank > rank && waiters_.contains(w));
      assert(upgrades || !w->upgrade);
      assert(of_owner(w->owner).contains(w));
      rank = w->rank;
      if (upgrades && !w->upgrade) assert(*q->first_plain == w);
      upgrades = w->upgrade;
      ++waiting;
    }
    if (upgrades) assert(q->first_plain == q->waiters.end());
    assert(q->shared == shared_.contains(q.get()));
    assert(q->holder.empty() || held_by(q->holder).contains(q.get()));
  }
  assert(waiting == waiters_.size());
}

}  // namespace holdfast
