// The order of the deadlines of fields, and its hidden part; see field_deadlines.h.
#include "core/keyspace/field_deadlines.h"

#include <cassert>

namespace holdfast {

void FieldDeadlines::insert(TimeMs deadline, const char* pair) {
  assert(deadline != kNever);
  order_.insert(item_of(deadline, pair));
  if (hides(deadline)) ++hidden_;
}

void FieldDeadlines::erase(TimeMs deadline, const char* pair) {
  order_.erase(item_of(deadline, pair));
  if (hides(deadline)) --hidden_;
}

ScoredPair FieldDeadlines::at(size_t rank) const {
  ScoredPair found{};
  order_.for_range(rank, 1, false, [&](const ScoredPair& item) { found = item; });
  return found;
}

size_t FieldDeadlines::hide_due(TimeMs now) {
  if (now <= past_) return 0;
  past_ = now;
  const size_t before = hidden_;
  hidden_ = order_.count_before([&](const ScoredPair& item) { return hides(deadline_of(item)); });
  return hidden_ - before;
}

void FieldDeadlines::check_invariants() const {
  order_.check_invariants();
  size_t hidden = 0;
  for_each([&](std::string_view, TimeMs deadline) { hidden += hides(deadline) ? 1 : 0; });
  assert(hidden == hidden_);
}

}  // namespace holdfast
