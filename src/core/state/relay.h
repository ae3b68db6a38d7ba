// The attempts of waiting clients that are known to be over: by their UNLOCK, or because another client has
// heard of it on another server. For each slot of a key it keeps the highest one. Servers and clients
// repeat the newest ones to each other, so that an end reaches a server that its own client cannot reach.
// Bounded: the slots that were used least recently give way. Lost at a restart.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash.h"
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
    Key key;
  };

  // Records that the attempt and all before it are over. `tell`: newest() returns it from now on, also if
  // it was known. Returns the highest attempt that was known to be over before; nullopt: none. No effect if
  // that is higher.
  std::optional<uint64_t> add(const Place& place, const Attempt& attempt, bool tell);
  bool is_over(const Place& place, const Attempt& attempt) const;
  // The attempts of the key to tell of, at most `most`, the newest first; `but`: not of this slot. Their
  // names are valid until the next change.
  std::vector<Attempt> newest(const Place& place, size_t most, std::string_view but = {}) const;

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
    std::string key_bytes;
    uint64_t key_hash = 0;
    std::string slot;
    uint64_t over = 0;             // the highest attempt that is over
    std::optional<uint64_t> told;  // the attempt that newest() returns
    Slot* newer = nullptr;         // those of the key that newest() returns, in the order of add()
    Slot* older = nullptr;
    std::optional<uint64_t> settles;  // see owe()
    std::list<Slot>::iterator self;   // in slots_
    Place place() const { return {db, {key_bytes, key_hash}}; }
  };
  struct ByPlace {
    using is_transparent = void;
    static Place place(const Slot* s) { return s->place(); }
    static const Place& place(const Place& p) { return p; }
    template <class A>
    size_t operator()(const A& a) const {
      return place(a).key.hash + place(a).db;
    }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return place(a).db == place(b).db && place(a).key.bytes == place(b).key.bytes;
    }
  };
  struct Name {
    Place place;
    std::string_view slot;
  };
  struct ByName {
    using is_transparent = void;
    static Name name(const Slot* s) { return {s->place(), s->slot}; }
    static const Name& name(const Name& n) { return n; }
    template <class A>
    size_t operator()(const A& a) const {
      const Name& n = name(a);
      return hash_bytes(n.slot, n.place.key.hash + n.place.db);
    }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return name(a).slot == name(b).slot && ByPlace()(name(a).place, name(b).place);
    }
  };
  // Found by a hash, in parts, so that no growth takes long.
  template <class By>
  using SlotSet = InParts<absl::flat_hash_set<Slot*, By, By>>;

  Slot* find(const Place& place, std::string_view slot) const;
  Slot* make(const Place& place, std::string_view slot);
  void tell_of(Slot* s);
  void unlink(Slot* s);
  void forget_oldest();
  static size_t bytes_of(const Slot& s);

  std::list<Slot> slots_;  // the one that was used least recently first
  SlotSet<ByName> by_name_;
  SlotSet<ByPlace> newest_;  // of each key the one that newest() returns first
  size_t bytes_ = 0;
};

}  // namespace holdfast
