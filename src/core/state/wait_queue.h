// The requests that wait for each key, in the order of their tickets, and the indexes over all queues. The
// ticket of a plain request is its arrival, so that these are in FIFO order. Owns queues and requests.
// Knows no keyspace: waiting.cc decides which waiters are granted, pop_waiting.cc which get an element.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_set.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/timers.h"
#include "core/base/types.h"
#include "core/keyspace/entry.h"
#include "core/state/ticket.h"

namespace holdfast {

struct Command;
struct Context;
struct PopWaiter;
struct Request;
struct WaitQueue;

// The most that --max-owner-size can be.
inline constexpr size_t kMostOwnerBytes = 65535;

// The terms on which a request asks for a lock.
struct LockTerms {
  DurationMs ttl;  // 0: no expiry, the hold lasts until its release
  Capacity capacity = kExclusive;
  DurationMs delay;
  uint64_t hint = 0;
  bool session = false;
  bool async = false;
  bool returns = true;  // if its connection ends, its owner may come again, and gets its place back
};

// A request that waits, of any kind. Its timer fires at its timeout.
struct WaitingRequest : Timer {
  const bool pops;                               // a PopWaiter, else a Waiter
  std::list<WaitingRequest*>::iterator of_conn;  // in its connection's waiting requests
  ConnId conn;
  bool linked = false;  // is there. A ticketed request can wait without a connection
  TimeMs since;
  uint64_t bytes = 0;  // estimated bytes of its names

 protected:
  explicit WaitingRequest(bool is_pop) : Timer(TimerKind::kWaitEnd), pops(is_pop) {}
  ~WaitingRequest() = default;
};

// A place in a queue. The groups follow each other. Within a group the smallest ticket (time, slot) is
// first.
struct Rank {
  enum class Group : uint8_t {
    kUpgrades,  // holders that ask for a stronger mode
    kVotes,     // ticketed requests that have a vote, and wait behind it
    kInLine,
    kSetAside,  // ticketed requests that cannot have a vote, as their client was not heard
  };
  Group group = Group::kUpgrades;
  uint64_t time = 0;      // of a plain request: microseconds since 1970 at its arrival, or more
  std::string_view slot;  // of the waiter's owner; empty: a plain request
  uint64_t arrival = 0;
  auto operator<=>(const Rank&) const = default;

  // Behind all others that are in line.
  static Rank last() { return {Group::kInLine, UINT64_MAX, {}, UINT64_MAX}; }
  static Rank begin(Group g) { return {g, 0, {}, 0}; }
  // Whether the ticket is smaller, whatever the groups are.
  bool is_older(const Rank& o) const {
    return std::tie(time, slot, arrival) < std::tie(o.time, o.slot, o.arrival);
  }
};

// A request that waits for a lock.
struct Waiter : WaitingRequest, LockTerms {
  Waiter() : WaitingRequest(false) {}
  WaitQueue* queue = nullptr;
  Rank rank;                 // its place: in queue->waiters
  uint64_t arrival = 0;      // grows with each new waiter, over all queues
  Waiter* before = nullptr;  // the waiter that arrived before it, over all queues
  Waiter* behind = nullptr;
  std::string owner;
  std::optional<std::string> note;  // see LockRequest
  bool upgrade = false;  // its owner is a holder already; goes ahead of waiters that are not upgrades
  std::unique_ptr<Ticket> ticket;  // null: a plain request

  bool has_vote() const { return rank.group == Rank::Group::kVotes; }
};

// What a request pops, and what it does with the elements.
struct PopTerms {
  EntryType type = EntryType::kList;  // of the keys
  bool last = false;                  // pops from the tail, or the highest scores
  std::optional<int64_t> count;       // BLMPOP and BZMPOP
  std::optional<std::string> target;  // BLMOVE: the list that gets the element
  bool target_tail = false;           // BLMOVE: at its tail
};

// Pops from a key that has elements, and replies. Commands give it, as only they know their replies.
using PopElements = void (*)(Request&, const PopTerms&, const Key&);

// Serves a request whose key has elements: removes it from its queues, and pops.
using ServePop = void (*)(Context&, PopWaiter*, const Key&);

// A request that waits until one of its keys has an element, such as BLPOP.
struct PopWaiter : WaitingRequest, PopTerms {
  PopWaiter() : WaitingRequest(true) {}
  struct Place {
    WaitQueue* queue;
    std::list<PopWaiter*>::iterator at;  // in queue->pops(type)
  };
  std::vector<Place> places;
  const Command* command = nullptr;
  PopElements pop = nullptr;
  ServePop serve = nullptr;
};

// The queue of a key. It exists as long as requests wait for the key, a lock-delay runs, or a holder
// listens for the loss of its hold. Its timer fires at the key's next change: the first expiry of a hold,
// or the end of the lock-delay. Requests that pop are apart from those for locks: a key is either a lock or
// a list, so the one kind never waits for the other.
struct WaitQueue : Timer {
  using Waiters = absl::btree_map<Rank, Waiter*>;

  WaitQueue() : Timer(TimerKind::kKeyChange) {}
  DbIndex db = 0;
  std::string key_bytes;
  uint64_t key_hash = 0;
  uint64_t serial = 0;                                 // grows with each new queue
  Waiters waiters;                                     // by rank
  uint64_t last_time = 0;                              // the ticket of the last plain request
  size_t votes = 0;                                    // waiters that have a vote
  absl::btree_map<std::string_view, Waiter*> by_slot;  // the ticketed ones
  // The request on whose behalf the server asked for votes, by its arrival, and when it does so again.
  uint64_t asker = 0;
  TimeMs next_inquiry{0};
  std::list<PopWaiter*> list_pops;  // in FIFO order
  std::list<PopWaiter*> zset_pops;
  TimeMs delay_until{0};                 // lock-delay: no new holder before this time
  bool ready = false;                    // marked: see WaitQueues::mark_ready
  bool shared = false;                   // a LockBody holds the key: see WaitQueues::shared
  std::string holder;                    // its owner in WaitQueues::held_by; empty: no single holder
  std::string first_holder;              // of a LockBody, for the log: see --log-waits-over
  std::vector<std::string> new_holders;  // owners that became holders since the queue was last served

  Key key() const { return {key_bytes, key_hash}; }
  std::list<PopWaiter*>& pops(EntryType type) { return type == EntryType::kList ? list_pops : zset_pops; }
  bool has_pops() const { return !list_pops.empty() || !zset_pops.empty(); }
  // The waiter that is served next: an upgrade, or the first one in line; null if there is none.
  Waiter* first() const {
    auto it = waiters.begin();
    if (it != waiters.end() && it->first.group == Rank::Group::kVotes) it = begin_of(Rank::Group::kInLine);
    return it == waiters.end() || it->first.group > Rank::Group::kInLine ? nullptr : it->second;
  }
  Waiters::const_iterator begin_of(Rank::Group g) const { return waiters.lower_bound(Rank::begin(g)); }
  Waiter* of_slot(std::string_view slot) const {
    const auto it = by_slot.find(slot);
    return it == by_slot.end() ? nullptr : it->second;
  }
  bool empty() const { return places() == 0; }
  size_t places() const { return waiters.size() + list_pops.size() + zset_pops.size(); }
  bool delayed(TimeMs now) const { return !is_due(delay_until, now); }
};

// The order of OwnerWaits: by queue, and within a queue by arrival.
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

// The order of the queues with waiters: the longest last, and of the same length the oldest last.
struct QueueLength {
  size_t waiters = 0;
  uint64_t serial_left = 0;  // UINT64_MAX - serial
  WaitQueue* queue = nullptr;
  bool operator<(const QueueLength& o) const {
    return waiters != o.waiters ? waiters < o.waiters : serial_left < o.serial_left;
  }
};

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

  // Adds a waiter at the place of its ticket. A plain one goes behind the other plain ones, and at least to
  // the place of `time`; or to a place that it had before (0: none). An upgrade goes behind the other
  // upgrades at the head.
  Waiter* enqueue(WaitQueue* q, std::unique_ptr<Waiter> owned, uint64_t time, uint64_t place = 0);
  // Removes a waiter and returns it. Its timer must be disarmed.
  std::unique_ptr<Waiter> remove(Waiter* w);
  // Makes a waiter an upgrade, because its owner has become a holder.
  void promote(Waiter* w);
  // Moves a plain waiter to the place of another one that has left the queue.
  void move_to(Waiter* w, uint64_t time);
  // Moves a ticketed waiter to another group, or to the place of a new ticket.
  void set_group(Waiter* w, Rank::Group group);
  void set_time(Waiter* w, uint64_t time);

  // Appends a request that pops to one more queue. The queues own it as soon as it is in one of them.
  void enqueue(WaitQueue* q, PopWaiter* w);
  // Removes such a request from all queues, and returns it. Its timer must be disarmed.
  std::unique_ptr<PopWaiter> remove(PopWaiter* w);
  // Exchanges the requests that pop between two queues.
  static void swap_pops(WaitQueue* a, WaitQueue* b);

  // All waiters of an owner, over all queues. Waiters of one queue are together, in the order of arrival.
  const OwnerWaits& of_owner(std::string_view owner) const;
  // The waiters of an owner in one queue. Returns a copy, which stays valid as a list while they are
  // granted.
  std::vector<Waiter*> of_owner_in(std::string_view owner, const WaitQueue* q) const;
  size_t waiting() const { return waiting_; }        // for locks
  size_t ticketed() const { return ticketed_; }      // those of them with a ticket
  uint64_t last_time() const { return last_time_; }  // the largest ticket of a plain waiter so far
  // A request that pops has a place in the queue of each of its keys.
  size_t pop_places() const { return pop_places_; }
  size_t places() const { return waiting_ + pop_places_; }  // of all requests
  size_t queues() const { return queues_.size(); }
  // The waiter that waits longest, over all queues; null if there is none.
  const Waiter* oldest() const { return first_arrived_; }
  size_t longest() const { return by_length_.empty() ? 0 : by_length_.rbegin()->waiters; }
  const absl::btree_set<QueueLength>& by_length() const { return by_length_; }
  uint64_t key_bytes() const { return key_bytes_; }    // of all queues
  uint64_t note_bytes() const { return note_bytes_; }  // of all waiters

  // Marks a queue that must be served before the loop iteration ends.
  void mark_ready(WaitQueue* q);
  // Returns the next queue to serve, in the order of marking; null if there is none. It stays marked until
  // end_serving(): its own serving needs no second one.
  WaitQueue* take_ready();
  static void end_serving(WaitQueue* q) { q->ready = false; }
  bool any_ready() const { return !ready_.empty(); }
  size_t ready() const { return ready_.size(); }

  // Records the holder of a key that has waiters, after each serving. The owner is empty if the key has no
  // single exclusive holder.
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

  static void set_rank(Waiter* w, const Rank& rank);
  static QueueLength length_of(WaitQueue* q) { return {q->waiters.size(), UINT64_MAX - q->serial, q}; }
  void link_arrival(Waiter* w);
  void unlink_arrival(Waiter* w);

  InParts<absl::flat_hash_set<std::unique_ptr<WaitQueue>, Hash, Equal>> queues_;
  InParts<StringMap<OwnerWaits>> by_owner_;
  InParts<StringMap<absl::flat_hash_set<WaitQueue*>>> held_by_;
  size_t waiting_ = 0;
  size_t ticketed_ = 0;
  size_t pop_places_ = 0;
  uint64_t key_bytes_ = 0;
  uint64_t note_bytes_ = 0;
  uint64_t last_arrival_ = 0;
  uint64_t last_upgrade_ = 0;
  uint64_t last_time_ = 0;
  uint64_t last_queue_ = 0;          // serial
  Waiter* first_arrived_ = nullptr;  // the waiters over all queues, in the order of their arrival
  Waiter* last_arrived_ = nullptr;
  absl::btree_set<QueueLength> by_length_;
  absl::flat_hash_set<WaitQueue*> shared_;
  std::deque<WaitQueue*> ready_;
};

}  // namespace holdfast
