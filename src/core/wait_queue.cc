// The indexes of queues and waiters, changed together.
#include "core/wait_queue.h"

#include <algorithm>
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

Waiter* WaitQueues::enqueue(WaitQueue* q, std::unique_ptr<Waiter> owned) {
  Waiter* w = owned.get();
  auto before = q->waiters.end();
  if (w->upgrade) {
    before =
        std::find_if(q->waiters.begin(), q->waiters.end(), [](const Waiter* x) { return !x->upgrade; });
  }
  // Upgrades are few and stand together at the head, so ranks below the others' first suffice for all of
  // them.
  w->rank = ++q->last_rank;
  if (w->upgrade) w->rank -= q->first_rank;
  w->queue = q;
  w->place = q->waiters.insert(before, w);
  by_owner_[w->owner].push_back(w);
  waiters_.emplace(w, std::move(owned));
  return w;
}

std::unique_ptr<Waiter> WaitQueues::remove(Waiter* w) {
  assert(!w->armed());
  w->queue->waiters.erase(w->place);
  const auto it = by_owner_.find(w->owner);
  std::erase(it->second, w);
  if (it->second.empty()) by_owner_.erase(it);
  return std::move(waiters_.extract(w).mapped());
}

void WaitQueues::promote(Waiter* w) {
  WaitQueue* q = w->queue;
  q->waiters.erase(w->place);
  w->upgrade = true;
  const auto before =
      std::find_if(q->waiters.begin(), q->waiters.end(), [](const Waiter* x) { return !x->upgrade; });
  w->rank = ++q->last_rank - q->first_rank;
  w->place = q->waiters.insert(before, w);
}

const std::vector<Waiter*>& WaitQueues::of_owner(std::string_view owner) const {
  static const std::vector<Waiter*> kNone;
  const auto it = by_owner_.find(owner);
  return it == by_owner_.end() ? kNone : it->second;
}

void WaitQueues::mark_ready(WaitQueue* q) {
  if (q->ready) return;
  q->ready = true;
  ready_.push_back(q);
}

WaitQueue* WaitQueues::take_ready() {
  if (ready_.empty()) return nullptr;
  WaitQueue* q = ready_.front();  // in the order in which they were marked
  ready_.pop_front();
  q->ready = false;
  return q;
}

void WaitQueues::unmark_ready(WaitQueue* q) {
  if (!q->ready) return;
  q->ready = false;
  std::erase(ready_, q);
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
      assert(std::ranges::count(of_owner(w->owner), w) == 1);
      rank = w->rank;
      upgrades = w->upgrade;
      ++waiting;
    }
    assert(q->shared == shared_.contains(q.get()));
    assert(q->holder.empty() || held_by(q->holder).contains(q.get()));
  }
  assert(waiting == waiters_.size());
}

}  // namespace holdfast
