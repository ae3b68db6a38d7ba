// The holders of a lock that is not a plain exclusive one. Owns them, and indexes them by owner, by expiry
// and by token, so that each function below costs at most O(log holders). Knows no key, waiter or
// connection table.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/types.h"

namespace holdfast {

// The longest note of a hold, in bytes.
inline constexpr size_t kMaxNoteBytes = 256;

// The properties of a hold beside owner, token and TTL. Most holds have no attachment.
struct Attachment {
  ConnId conn;                  // the connection of its session, which is notified if the hold is lost
  bool session = false;         // ends with the connection
  uint32_t session_number = 0;  // or ends with RESET: see Conn::session
  bool async = false;           // a push reports its end
  DurationMs delay;             // lock-delay after every end except UNLOCK
  uint64_t lease = 0;           // the serial of the lease that the hold belongs to; 0: none
  std::string note;             // why and by whom, for people; any bytes
  bool any() const { return session || async || delay.count > 0 || lease != 0 || !note.empty(); }
};

struct Holder {
  std::string owner;
  Token token;
  Capacity capacity;
  TimeMs deadline = kNever;
  DurationMs ttl;  // as last set; 0: none
  TimeMs held_since;
  TimeMs renewed;
  ConnId client;
  Attachment attachment;
};

// The number of holds in LockBodies per owner, by the hash of its name. Owners with the same hash are
// counted together: a count of zero is exact. Also counts the locks, and the bytes of
// the notes of these holds.
class OwnerCounts {
 public:
  uint64_t note_bytes = 0;

  void add(std::string_view owner) { ++counts_[hash(owner)]; }
  void remove(std::string_view owner) {
    const auto it = counts_.find(hash(owner));
    if (--it->second == 0) counts_.erase(it);
  }
  bool any(std::string_view owner) const { return counts_.contains(hash(owner)); }
  // The locks with holders, by mode.
  size_t shared = 0;
  size_t semaphores = 0;

 private:
  static uint64_t hash(std::string_view owner) { return std::hash<std::string_view>{}(owner); }
  absl::btree_map<uint64_t, uint32_t> counts_;  // a tree, since a hash table that grows delays all clients
};

class LockBody {
 public:
  // Counts its holders in `counts`, which must outlive it.
  explicit LockBody(OwnerCounts& counts) : counts_(counts) {}
  LockBody(const LockBody&) = delete;
  LockBody& operator=(const LockBody&) = delete;
  ~LockBody();

  size_t size() const { return by_owner_.size(); }
  // The number of holders that get a push if they lose their hold.
  size_t listeners() const { return listeners_; }

  // Returns the hold of `owner`, or null if it has none. The pointer is valid until that holder is removed.
  const Holder* find(std::string_view owner) const;
  // Adds a holder. The owner must not be a holder yet.
  const Holder* add(Holder holder);
  void remove(const Holder* holder);

  void set_deadline(const Holder* holder, TimeMs deadline, DurationMs ttl, TimeMs renewed);
  void set_token(const Holder* holder, Token token);
  void set_capacity(const Holder* holder, Capacity capacity);
  void set_attachment(const Holder* holder, Attachment a, ConnId client);
  void set_client(const Holder* holder, ConnId client) { own(holder)->client = client; }

  // Returns the smallest capacity of all holders except `except` (null: no exception); kShared if there is
  // none.
  Capacity tightest(const Holder* except = nullptr) const;
  // Returns the holder with the smallest token; null if there is no holder.
  const Holder* first() const { return by_token_.empty() ? nullptr : by_token_.begin()->second; }
  // Returns the holder that expires first; null if there is no holder.
  const Holder* first_to_expire() const;
  // Returns the latest deadline of all holders: the expiry of the whole key.
  TimeMs last_deadline() const;
  bool has_token(Token token) const;

  // Calls f(holder) in the order of the tokens. This is the order of the grants, unless FENCE made tokens
  // equal.
  template <class F>
  void for_each(F f) const {
    for (const auto& [token, holder] : by_token_) f(*holder);
  }

  size_t bytes() const { return sizeof(LockBody) + size() * (sizeof(Holder) + 112); }
  void check_invariants() const;

 private:
  using Rank = std::pair<Token, std::string_view>;  // the owner orders equal tokens
  static Rank rank(const Holder* h) { return {h->token, h->owner}; }
  void count(const Attachment& a);
  void discount(const Attachment& a);
  Holder* own(const Holder* holder);
  void index(Holder* holder);
  void unindex(const Holder* holder);
  enum class Counted : uint8_t { kNot, kAsShared, kAsSemaphore };
  // Counts the lock by its present mode.
  void count_mode();

  OwnerCounts& counts_;
  absl::flat_hash_map<std::string_view, std::unique_ptr<Holder>> by_owner_;  // keys: views of Holder::owner
  absl::btree_set<std::pair<TimeMs, Rank>> by_deadline_;
  absl::btree_map<Rank, Holder*> by_token_;
  absl::btree_map<Capacity, size_t> capacities_;  // number of holders with each capacity
  size_t listeners_ = 0;
  Counted counted_ = Counted::kNot;
};

}  // namespace holdfast
