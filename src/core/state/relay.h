// The attempts of waiting clients that are known to be over: by their UNLOCK, or because another client has
// heard of it on another server. For each slot of a key it keeps the highest one. Servers and clients
// repeat the newest ones to each other, so that an end reaches a server that its own client cannot reach.
// Bounded: the slots that were used least recently give way. Lost at a restart.
#pragma once

#include <absl/container/btree_set.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/types.h"
#include "core/state/ticket.h"

namespace holdfast {

class Relay {
 public:
  static constexpr size_t kMostSlots = 32768;
  static constexpr size_t kMostBytes = size_t{8} << 20U;

  // A slot lives in one key of one database.
  struct Place {
    DbIndex db = 0;
    std::string_view key;
  };

  // Records that the attempt and all before it are over. `tell`: newest() returns it from now on, also if
  // it was known. Returns the highest attempt that was known to be over before; nullopt: none. No effect if
  // that is higher.
  std::optional<uint64_t> add(const Place& place, const Attempt& attempt, bool tell);
  bool is_over(const Place& place, const Attempt& attempt) const;
  // The owners of the key to tell of, at most `most`, the newest first.
  std::vector<std::string> newest(const Place& place, size_t most) const;

  // The attempt's hold was ended by a word of another client. So the UNLOCK of its own client finds no
  // hold: settle() returns true once then. The slot must be known.
  void owe(const Place& place, const Attempt& attempt);
  bool settle(const Place& place, const Attempt& attempt);

  size_t size() const { return slots_.size(); }
  size_t bytes() const { return bytes_; }
  void check_invariants() const;

 private:
  struct Slot {
    DbIndex db = 0;
    std::string key;
    std::string slot;
    uint64_t over = 0;                // the highest attempt that is over
    std::optional<uint64_t> told;     // the attempt that newest() returns
    uint64_t told_serial = 0;         // grows with each such attempt
    std::optional<uint64_t> settles;  // see owe()
    std::list<Slot>::iterator self;   // in slots_
  };
  using Name = std::tuple<DbIndex, std::string_view, std::string_view>;
  struct ByName {
    using is_transparent = void;
    static Name name(const Slot* s) { return {s->db, s->key, s->slot}; }
    static Name name(const Name& n) { return n; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return name(a) < name(b);
    }
  };
  // Those of a key are together, the newest first.
  using Told = std::tuple<DbIndex, std::string_view, uint64_t>;
  struct NewestFirst {
    using is_transparent = void;
    static Told told(const Slot* s) { return {s->db, s->key, UINT64_MAX - s->told_serial}; }
    static Told told(const Told& t) { return t; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return told(a) < told(b);
    }
  };

  Slot* find(const Place& place, std::string_view slot) const;
  Slot* make(const Place& place, std::string_view slot);
  void tell_of(Slot* s);
  void forget_oldest();
  static size_t bytes_of(const Slot& s);

  std::list<Slot> slots_;  // the one that was used least recently first
  absl::btree_set<Slot*, ByName> by_name_;
  absl::btree_set<Slot*, NewestFirst> told_;
  uint64_t last_told_ = 0;
  size_t bytes_ = 0;
};

}  // namespace holdfast
