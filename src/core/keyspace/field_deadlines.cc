// Two trees with the same fields; see field_deadlines.h.
#include "core/keyspace/field_deadlines.h"

#include <cassert>
#include <iterator>
#include <utility>

namespace holdfast {

// A node of the map with the allocator's overhead, text that does not fit into it, and a place in the
// order, whose nodes are about three quarters full.
uint64_t FieldDeadlines::bytes_of(std::string_view field) {
  constexpr uint64_t kNode = 32 + sizeof(Fields::value_type) + 8;
  constexpr uint64_t kInside = 15;
  return kNode + sizeof(Due) * 4 / 3 + (field.size() > kInside ? field.size() + 16 : 0);
}

TimeMs FieldDeadlines::find(std::string_view field) const {
  const auto at = fields_.find(field);
  return at == fields_.end() ? kNever : at->second;
}

void FieldDeadlines::set(std::string_view field, TimeMs deadline) {
  if (deadline == kNever) return erase(field);
  auto at = fields_.find(field);
  if (at == fields_.end()) {
    at = fields_.emplace(field, deadline).first;
    bytes_ += bytes_of(field);
  } else {
    order_.erase({at->second, at});
    at->second = deadline;
  }
  order_.insert({deadline, at});
}

void FieldDeadlines::erase(std::string_view field) {
  if (const auto at = fields_.find(field); at != fields_.end()) erase(Fields::const_iterator(at));
}

void FieldDeadlines::erase(Fields::const_iterator at) {
  bytes_ -= bytes_of(at->first);
  order_.erase({at->second, at});
  fields_.erase(at);
}

std::unique_ptr<FieldDeadlines> FieldDeadlines::copy() const {
  auto other = std::make_unique<FieldDeadlines>();
  other->of_key = of_key;
  for (const auto& [field, deadline] : fields_) {
    const auto at = other->fields_.emplace_hint(other->fields_.end(), field, deadline);
    other->order_.insert({deadline, at});
  }
  other->bytes_ = bytes_;
  return other;
}

bool FieldDeadlines::free_some() {
  constexpr size_t kStepFields = 512;
  for (size_t i = 0; i < kStepFields && !fields_.empty(); ++i) erase(std::prev(fields_.cend()));
  return fields_.empty();
}

void FieldDeadlines::check_invariants() const {
  assert(order_.size() == fields_.size());
  uint64_t bytes = sizeof(FieldDeadlines);
  for (auto at = fields_.begin(); at != fields_.end(); ++at) {
    assert(at->second != kNever && order_.contains({at->second, at}));
    bytes += bytes_of(at->first);
  }
  assert(bytes == bytes_);
}

}  // namespace holdfast
