// The deadlines of the fields of one hash, in the order in which they are due. Owned by a HashBody, and
// only while at least one of its fields has, or just had, a deadline. Each field's own deadline is behind
// its pair in the hash, which keeps the pair in place. Knows no clock.
//
// A million fields may be due at once, and their erasure takes a second. So fields are hidden first, all
// that are due in one step, and erased in parts. A hidden field is missing for each reader.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/types.h"
#include "core/keyspace/ranked_scores.h"

namespace holdfast {

class FieldDeadlines {
 public:
  // The deadline of the whole hash.
  TimeMs of_key = kNever;
  // When the next part of the hidden fields is erased. Kept by the owner of the hash's entry.
  TimeMs erasure{0};

  bool empty() const { return order_.size() == 0; }
  size_t size() const { return order_.size(); }  // with hidden fields
  // Estimated memory.
  uint64_t bytes() const { return sizeof(FieldDeadlines) - sizeof(RankedScores) + order_.bytes(); }

  // `pair` is that of the field, as packed_hash.h writes it.
  void insert(TimeMs deadline, const char* pair);
  void erase(TimeMs deadline, const char* pair);

  // Of all fields, also hidden ones; kNever if there is none.
  TimeMs first() const { return deadline_at(0); }
  TimeMs last() const { return empty() ? kNever : deadline_at(size() - 1); }
  // The field that is due first. There must be one. Equal deadlines have the order of the fields' bytes.
  std::string_view first_field() const { return at(0).member(); }
  // The deadline that the entry of the hash must have: when the hash, or a field that is not hidden, is
  // due, or hidden fields are to be erased. The timing wheel then serves all.
  TimeMs next() const { return std::min({of_key, deadline_at(hidden_), hidden_ > 0 ? erasure : kNever}); }

  // Hides all fields that are due. Returns how many are hidden now for the first time. Takes O(log n).
  size_t hide_due(TimeMs now);
  size_t hidden() const { return hidden_; }
  bool hides(TimeMs deadline) const { return is_due(deadline, past_); }

  // Calls `f(field, deadline)` for all fields that have one, hidden or not, in their order.
  template <class F>
  void for_each(F f) const {
    order_.for_range(0, size(), false,
                     [&](const ScoredPair& item) { f(item.member(), deadline_of(item)); });
  }

  // Frees the next part. Returns true when the destructor may free the rest at once.
  bool free_some() { return order_.free_some(); }
  void check_invariants() const;

 private:
  static ScoredPair item_of(TimeMs deadline, const char* pair) {
    return {static_cast<double>(deadline.count), pair};  // exact for 285,000 years
  }
  static TimeMs deadline_of(const ScoredPair& item) { return {static_cast<int64_t>(item.score)}; }
  ScoredPair at(size_t rank) const;
  TimeMs deadline_at(size_t rank) const { return rank < size() ? deadline_of(at(rank)) : kNever; }

  RankedScores order_;
  TimeMs past_{-1};  // fields that are due at this time are hidden
  size_t hidden_ = 0;
};

}  // namespace holdfast
