// The holders of a lock that is not a plain exclusive one. Owns them; keeps them by owner, by expiry and by
// token, so that every question below costs at most O(log holders). Knows no key, waiter or connection
// table.
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

// What a hold has beyond owner, token and ttl. Most holds have none of it.
struct Attachment {
  ConnId conn;                  // whose session it belongs to, and who hears of its loss
  bool session = false;         // ends with the connection
  uint32_t session_number = 0;  // or with RESET: Conn::session
  bool async = false;           // its end is told by a push
  DurationMs delay;             // lock-delay after an end other than by UNLOCK
  uint64_t lease = 0;           // the serial of the lease whose document this is; 0: none
  bool any() const { return session || async || delay.count > 0 || lease != 0; }
};

struct Holder {
  std::string owner;
  Token token;
  Capacity capacity;
  TimeMs deadline = kNever;
  DurationMs ttl;  // as last given; 0: none
  TimeMs held_since;
  TimeMs renewed;
  ConnId client;
  Attachment attachment;
};

// How many holds of LockBodies each owner has, by the hash of its name. Owners of the same hash count as
// one: so where there are none, the owner has none.
class OwnerCounts {
 public:
  void add(std::string_view owner) { ++counts_[hash(owner)]; }
  void remove(std::string_view owner) {
    const auto it = counts_.find(hash(owner));
    if (--it->second == 0) counts_.erase(it);
  }
  bool any(std::string_view owner) const { return counts_.contains(hash(owner)); }

 private:
  static uint64_t hash(std::string_view owner) { return std::hash<std::string_view>{}(owner); }
  absl::btree_map<uint64_t, uint32_t> counts_;  // a tree, as a table would stand still to grow
};

class LockBody {
 public:
  // Counts its holders in `counts`, which must outlive it.
  explicit LockBody(OwnerCounts& counts) : counts_(counts) {}
  LockBody(const LockBody&) = delete;
  LockBody& operator=(const LockBody&) = delete;
  ~LockBody();

  size_t size() const { return by_owner_.size(); }
  // How many holders hear of their loss by a push.
  size_t listeners() const { return listeners_; }

  // Null where `owner` holds nothing. The pointer is good until that holder is removed.
  const Holder* find(std::string_view owner) const;
  // The owner must not hold it yet.
  const Holder* add(Holder holder);
  void remove(const Holder* holder);

  void set_deadline(const Holder* holder, TimeMs deadline, DurationMs ttl, TimeMs renewed);
  void set_token(const Holder* holder, Token token);
  void set_capacity(const Holder* holder, Capacity capacity);
  void set_attachment(const Holder* holder, const Attachment& a, ConnId client);

  // The smallest capacity of all holders but `except` (null: of all); kShared where there is none.
  Capacity tightest(const Holder* except = nullptr) const;
  // Who expires first; null where nobody is left.
  const Holder* first_to_expire() const;
  // When the key itself would be gone: the latest deadline.
  TimeMs last_deadline() const;
  bool has_token(Token token) const;

  // In the order of their tokens: of their grants, where FENCE has not made tokens equal.
  template <class F>
  void for_each(F f) const {
    for (const auto& [token, holder] : by_token_) f(*holder);
  }

  size_t bytes() const { return sizeof(LockBody) + size() * (sizeof(Holder) + 112); }
  void check_invariants() const;

 private:
  using Rank = std::pair<Token, std::string_view>;  // the owner decides between equal tokens
  static Rank rank(const Holder* h) { return {h->token, h->owner}; }
  Holder* own(const Holder* holder);
  void index(Holder* holder);
  void unindex(const Holder* holder);

  OwnerCounts& counts_;
  absl::flat_hash_map<std::string_view, std::unique_ptr<Holder>> by_owner_;  // keys: views of Holder::owner
  absl::btree_set<std::pair<TimeMs, Rank>> by_deadline_;
  absl::btree_map<Rank, Holder*> by_token_;
  absl::btree_map<Capacity, size_t> capacities_;  // how many holders have each
  size_t listeners_ = 0;
};

}  // namespace holdfast
