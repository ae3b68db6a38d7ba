// The requests that wait for a key, in order, and the indexes over all queues. Owns queues and waiters.
// Knows no keyspace: who may be let in is decided in waiting.cc.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_set.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/timers.h"
#include "core/base/types.h"

namespace holdfast {

struct WaitQueue;

// One request in a queue. Its timer is the end of its wait.
struct Waiter : Timer {
  Waiter() : Timer(TimerKind::kWaitEnd) {}
  WaitQueue* queue = nullptr;
  std::list<Waiter*>::iterator place;    // in queue->waiters
  std::list<Waiter*>::iterator of_conn;  // in its connection's waiters
  uint64_t rank = 0;                     // grows along the queue
  uint64_t arrival = 0;                  // grows with each that comes to wait, in any queue
  ConnId conn;
  std::string owner;
  Capacity capacity;
  DurationMs ttl;
  DurationMs delay;
  uint64_t hint = 0;
  bool session = false;
  bool async = false;
  bool upgrade = false;  // by a holder, and ahead of all that are none
  TimeMs since;
};

// A key's queue; exists as long as requests wait, a lock-delay runs or a holder listens for its loss. Its
// timer is the key's next change: the first expiry of a hold, or the end of the delay.
struct WaitQueue : Timer {
  WaitQueue() : Timer(TimerKind::kKeyChange) {}
  DbIndex db = 0;
  std::string key_bytes;
  uint64_t key_hash = 0;
  std::list<Waiter*> waiters;                                // upgrades first
  std::list<Waiter*>::iterator first_plain = waiters.end();  // the first that is none
  uint64_t first_rank = 1ULL << 32U;  // ranks of upgrades count down from here, others up
  uint64_t last_rank = 1ULL << 32U;
  TimeMs delay_until{0};                 // nobody new is admitted before
  bool ready = false;                    // marked: see WaitQueues::mark_ready
  bool shared = false;                   // the key is held by a LockBody: see WaitQueues::shared
  std::string holder;                    // under which owner it stands in WaitQueues::held_by; empty: none
  std::vector<std::string> new_holders;  // owners that became holders since the queue was last served

  Key key() const { return {key_bytes, key_hash}; }
  bool delayed(TimeMs now) const { return !is_due(delay_until, now); }
};

// The order of OwnerWaits: queue by queue, and in each as they came.
struct ByQueue {
  using is_transparent = void;
  using Place = std::pair<const WaitQueue*, uint64_t>;
  static Place place(const Waiter* w) { return {w->queue, w->arrival}; }
  static Place place(const Place& p) { return p; }
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return std::less<>()(place(a), place(b));
  }
};
using OwnerWaits = absl::btree_set<Waiter*, ByQueue>;

class WaitQueues {
 public:
  WaitQueues() = default;
  ~WaitQueues();
  WaitQueues(const WaitQueues&) = delete;
  WaitQueues& operator=(const WaitQueues&) = delete;

  WaitQueue* find(DbIndex db, const Key& key) const;
  WaitQueue* find_or_make(DbIndex db, const Key& key);
  // The queue must be empty and disarmed.
  void destroy(WaitQueue* q);

  // Puts a waiter at the end, or, where it is an upgrade, behind the upgrades at the head.
  Waiter* enqueue(WaitQueue* q, std::unique_ptr<Waiter> owned);
  // Takes a waiter out; its timer must be disarmed.
  std::unique_ptr<Waiter> remove(Waiter* w);
  // Makes a waiter an upgrade: its owner has become a holder.
  void promote(Waiter* w);

  // All waiting requests of an owner, in any queue, those of one queue together in the order of arrival.
  const OwnerWaits& of_owner(std::string_view owner) const;
  // Those in one queue. A copy: it stays as it is when they are let in.
  std::vector<Waiter*> of_owner_in(std::string_view owner, const WaitQueue* q) const;
  size_t waiting() const { return waiting_; }
  size_t queues() const { return queues_.size(); }
  uint64_t key_bytes() const { return key_bytes_; }  // of all queues

  // The queue has to be looked at again before the turn ends.
  void mark_ready(WaitQueue* q);
  // Takes the next to be served, in the order in which they were marked. It stays marked, as what its
  // serving changes needs no other, until end_serving().
  WaitQueue* take_ready();
  static void end_serving(WaitQueue* q) { q->ready = false; }
  bool any_ready() const { return !ready_.empty(); }

  // Who holds the keys that are waited for: set after each serving. Empty owner: no single one.
  void record_holder(WaitQueue* q, std::string_view owner, bool shared);
  const absl::flat_hash_set<WaitQueue*>& held_by(std::string_view owner) const;
  const absl::flat_hash_set<WaitQueue*>& shared() const { return shared_; }

  template <class F>
  void for_each(F f) const {
    for (const auto& part : queues_) {
      for (const auto& q : part) f(*q);
    }
  }
  void check_invariants() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(const std::pair<DbIndex, Key>& k) const { return k.second.hash + k.first; }
    size_t operator()(const std::unique_ptr<WaitQueue>& q) const { return q->key_hash + q->db; }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return db(a) == db(b) && bytes(a) == bytes(b);
    }
    static DbIndex db(const std::pair<DbIndex, Key>& k) { return k.first; }
    static DbIndex db(const std::unique_ptr<WaitQueue>& q) { return q->db; }
    static std::string_view bytes(const std::pair<DbIndex, Key>& k) { return k.second.bytes; }
    static std::string_view bytes(const std::unique_ptr<WaitQueue>& q) { return q->key_bytes; }
  };

  static void put_in(Waiter* w);
  static void take_out(Waiter* w);

  InParts<absl::flat_hash_set<std::unique_ptr<WaitQueue>, Hash, Equal>> queues_;
  InParts<StringMap<OwnerWaits>> by_owner_;
  InParts<StringMap<absl::flat_hash_set<WaitQueue*>>> held_by_;
  size_t waiting_ = 0;
  uint64_t key_bytes_ = 0;
  uint64_t last_arrival_ = 0;
  absl::flat_hash_set<WaitQueue*> shared_;
  std::deque<WaitQueue*> ready_;
};

}  // namespace holdfast
