// Changes the queues and the indexes of waiters together.
#include "core/state/wait_queue.h"

#include <algorithm>
#include <cassert>

namespace holdfast {

WaitQueues::~WaitQueues() {
  std::vector<std::unique_ptr<PopWaiter>> pops;  // each is in several queues
  for_each([&](WaitQueue& q) {
    for (const auto& [rank, w] : q.waiters) delete w;
    for (const auto* list : {&q.list_pops, &q.zset_pops}) {
      for (PopWaiter* w : *list) {
        if (w->places.back().queue == &q) pops.emplace_back(w);
      }
    }
  });
}

WaitQueue* WaitQueues::find(DbIndex db, const Key& key) const {
  const auto& queues = queues_.part(key.hash);
  const auto it = queues.find(std::pair(db, key));
  return it == queues.end() ? nullptr : it->get();
}

WaitQueue* WaitQueues::find_or_make(DbIndex db, const Key& key) {
  if (WaitQueue* q = find(db, key)) return q;
  auto made = std::make_unique<WaitQueue>();
  made->db = db;
  made->key_bytes = key.bytes;
  made->key_hash = key.hash;
  made->serial = ++last_queue_;
  key_bytes_ += key.bytes.size();
  return queues_.part(key.hash).insert(std::move(made)).first->get();
}

void WaitQueues::destroy(WaitQueue* q) {
  assert(q->empty() && !q->armed() && !q->ready);
  record_holder(q, {}, false);
  key_bytes_ -= q->key_bytes.size();
  auto& queues = queues_.part(q->key_hash);
  queues.erase(queues.find(std::pair(q->db, q->key())));
}

void WaitQueues::link_arrival(Waiter* w) {
  w->before = last_arrived_;
  (last_arrived_ == nullptr ? first_arrived_ : last_arrived_->behind) = w;
  last_arrived_ = w;
}

void WaitQueues::unlink_arrival(Waiter* w) {
  (w->before == nullptr ? first_arrived_ : w->before->behind) = w->behind;
  (w->behind == nullptr ? last_arrived_ : w->behind->before) = w->before;
}

Waiter* WaitQueues::enqueue(WaitQueue* q, std::unique_ptr<Waiter> owned, uint64_t time, uint64_t place) {
  Waiter* w = owned.release();
  w->queue = q;
  w->arrival = ++last_arrival_;
  w->rank = {w->upgrade ? Rank::Group::kUpgrades : Rank::Group::kInLine, place, {}, w->arrival};
  if (w->ticket != nullptr) {
    w->rank.time = w->ticket->time;
    w->rank.slot = w->ticket->attempt.slot;
    q->by_slot.emplace(w->rank.slot, w);
    ++ticketed_;
  } else if (w->upgrade) {
    w->rank.time = ++last_upgrade_;
  } else if (place == 0) {
    w->rank.time = q->last_time = std::max(q->last_time + 1, time);
    last_time_ = std::max(last_time_, q->last_time);
  }
  by_length_.erase(length_of(q));
  q->waiters.emplace(w->rank, w);
  by_length_.insert(length_of(q));
  link_arrival(w);
  by_owner_.part(w->owner)[w->owner].insert(w);
  ++waiting_;
  note_bytes_ += w->note ? w->note->size() : 0;
  return w;
}

std::unique_ptr<Waiter> WaitQueues::remove(Waiter* w) {
  assert(!w->armed());
  unlink_arrival(w);
  by_length_.erase(length_of(w->queue));
  w->queue->waiters.erase(w->rank);
  if (w->ticket != nullptr) {
    w->queue->by_slot.erase(w->rank.slot);
    w->queue->votes -= w->has_vote() ? 1 : 0;
    --ticketed_;
  }
  if (!w->queue->waiters.empty()) by_length_.insert(length_of(w->queue));
  StringMap<OwnerWaits>& owners = by_owner_.part(w->owner);
  const auto it = owners.find(w->owner);
  it->second.erase(w);
  if (it->second.empty()) owners.erase(it);
  --waiting_;
  note_bytes_ -= w->note ? w->note->size() : 0;
  return std::unique_ptr<Waiter>(w);
}

void WaitQueues::set_rank(Waiter* w, const Rank& rank) {
  w->queue->waiters.erase(w->rank);
  w->queue->votes -= w->has_vote() ? 1 : 0;
  w->rank = rank;
  w->queue->votes += w->has_vote() ? 1 : 0;
  w->queue->waiters.emplace(w->rank, w);
}

void WaitQueues::promote(Waiter* w) {
  w->upgrade = true;
  set_rank(w, {Rank::Group::kUpgrades, ++last_upgrade_, {}, w->arrival});
}

void WaitQueues::move_to(Waiter* w, uint64_t time) {
  set_rank(w, {Rank::Group::kInLine, time, {}, w->arrival});
}

void WaitQueues::set_group(Waiter* w, Rank::Group group) {
  set_rank(w, {group, w->rank.time, w->rank.slot, w->arrival});
}

void WaitQueues::set_time(Waiter* w, uint64_t time) {
  set_rank(w, {w->rank.group, time, w->rank.slot, w->arrival});
}

void WaitQueues::enqueue(WaitQueue* q, PopWaiter* w) {
  std::list<PopWaiter*>& pops = q->pops(w->type);
  w->places.push_back({q, pops.insert(pops.end(), w)});
  ++pop_places_;
}

std::unique_ptr<PopWaiter> WaitQueues::remove(PopWaiter* w) {
  assert(!w->armed());
  for (const PopWaiter::Place& place : w->places) place.queue->pops(w->type).erase(place.at);
  pop_places_ -= w->places.size();
  w->places.clear();
  return std::unique_ptr<PopWaiter>(w);
}

void WaitQueues::swap_pops(WaitQueue* a, WaitQueue* b) {
  const auto move_places = [](const std::list<PopWaiter*>& moved, const WaitQueue* from, WaitQueue* to) {
    for (PopWaiter* w : moved) std::ranges::find(w->places, from, &PopWaiter::Place::queue)->queue = to;
  };
  for (const EntryType type : {EntryType::kList, EntryType::kZset}) {
    move_places(a->pops(type), a, b);
    move_places(b->pops(type), b, a);
    a->pops(type).swap(b->pops(type));  // iterators stay valid
  }
}

const OwnerWaits& WaitQueues::of_owner(std::string_view owner) const {
  static const OwnerWaits kNone;
  const StringMap<OwnerWaits>& owners = by_owner_.part(owner);
  const auto it = owners.find(owner);
  return it == owners.end() ? kNone : it->second;
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

void WaitQueues::record_holder(WaitQueue* q, std::string_view owner, bool shared) {
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
    auto& holders = held_by_.part(q->holder);
    const auto it = holders.find(q->holder);
    it->second.erase(q);
    if (it->second.empty()) holders.erase(it);
  }
  q->holder = owner;
  if (!owner.empty()) held_by_.part(q->holder)[q->holder].insert(q);
}

const absl::flat_hash_set<WaitQueue*>& WaitQueues::held_by(std::string_view owner) const {
  static const absl::flat_hash_set<WaitQueue*> kNone;
  const auto& holders = held_by_.part(owner);
  const auto it = holders.find(owner);
  return it == holders.end() ? kNone : it->second;
}

void WaitQueues::check_invariants() const {
  size_t waiting = 0;
  size_t ticketed = 0;
  size_t pop_places = 0;
  uint64_t note_bytes = 0;
  for_each([&](WaitQueue& q) {
    size_t votes = 0;
    for (const auto& [rank, w] : q.waiters) {
      ++waiting;
      note_bytes += w->note ? w->note->size() : 0;
      assert(w->queue == &q && w->rank == rank && rank.arrival == w->arrival);
      assert(w->upgrade == (rank.group == Rank::Group::kUpgrades));
      assert(of_owner(w->owner).contains(w));
      votes += w->has_vote() ? 1 : 0;
      if (w->ticket == nullptr) {
        assert(rank.group <= Rank::Group::kInLine && !w->has_vote() && rank.slot.empty());
        continue;
      }
      ++ticketed;
      assert(q.of_slot(rank.slot) == w && rank.slot.data() == w->owner.data());
      assert(w->ticket->time == rank.time && w->has_vote() == (w->ticket->vote.value != 0));
    }
    assert(votes == q.votes && q.by_slot.size() <= q.waiters.size());
    for (const EntryType type : {EntryType::kList, EntryType::kZset}) {
      for (auto it = q.pops(type).begin(); it != q.pops(type).end(); ++it, ++pop_places) {
        const auto is_here = [&](const PopWaiter::Place& p) { return p.queue == &q && p.at == it; };
        assert((*it)->type == type && std::ranges::count_if((*it)->places, is_here) == 1);
      }
    }
    assert(q.shared == shared_.contains(&q));
    assert(q.holder.empty() || held_by(q.holder).contains(&q));
  });
  assert(ticketed == ticketed_ && waiting == waiting_ && note_bytes == note_bytes_ &&
         pop_places == pop_places_);
  size_t arrived = 0;
  for (const Waiter* w = first_arrived_; w != nullptr; w = w->behind, ++arrived) {
    assert(w->behind == nullptr ? w == last_arrived_ : w->behind->arrival > w->arrival);
  }
  assert(arrived == waiting_);
  for (const QueueLength& length : by_length_) {
    assert(length.waiters == length.queue->waiters.size() && length.waiters > 0);
    waiting -= length.waiters;
  }
  assert(waiting == 0);
}

}  // namespace holdfast
