// The places in the queues of waiters whose connection ended. For a short time the owner of such a wait
// gets its place back, before those that came after it: a client with a read timeout connects again and
// repeats its request. An empty place delays nobody.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/timers.h"
#include "core/base/types.h"

namespace holdfast {

// Its timer fires when the first place ends.
class EmptyPlaces : public Timer {
 public:
  static constexpr DurationMs kKept{1000};

  // Whose place: the database, the key and the owner.
  struct Whose {
    DbIndex db;
    std::string_view key;
    std::string_view owner;
  };

  EmptyPlaces() : Timer(TimerKind::kPlacesEnd) {}

  // Keeps a place until `end`, at most `most` places in all: the oldest ones give way. Replaces another
  // place of that name.
  void keep(const Whose& whose, uint64_t rank, TimeMs end, size_t most);
  // Returns the rank of the place; 0 if there is none.
  uint64_t find(const Whose& whose, TimeMs now) const;
  void forget(const Whose& whose);
  // Forgets places that have ended, not too many at once.
  void end_some(TimeMs now);
  TimeMs next_end() const { return by_end_.empty() ? kNever : by_end_.begin()->first.first; }
  size_t size() const { return places_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  using Name = std::tuple<DbIndex, std::string, std::string>;
  using End = std::pair<TimeMs, uint64_t>;  // with a number, to tell places that end together apart
  struct Place {
    uint64_t rank;
    End end;
  };
  using NameView = std::tuple<DbIndex, std::string_view, std::string_view>;
  static NameView view_of(const Whose& whose) { return {whose.db, whose.key, whose.owner}; }
  struct Before {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return NameView(a) < NameView(b);
    }
  };
  void forget_first();
  static uint64_t bytes_of(const Name& name);

  absl::btree_map<Name, Place, Before> places_;  // no hash table: its growth would delay all clients
  absl::btree_map<End, Name> by_end_;
  uint64_t last_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast
