// The deadlines of the fields of one hash: by field, and in the order in which they are due. Owned by a
// HashBody, and only while at least one of its fields has, or just had, a deadline. Knows no clock.
#pragma once

#include <absl/container/btree_set.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/types.h"

namespace holdfast {

class FieldDeadlines {
 public:
  // The deadline of the whole hash. Its entry has the earliest of this and all field deadlines, so that the
  // timing wheel serves both.
  TimeMs of_key = kNever;

  bool empty() const { return fields_.empty(); }
  size_t size() const { return fields_.size(); }
  // Estimated memory.
  uint64_t bytes() const { return bytes_; }

  // The deadline of a field; kNever if it has none.
  TimeMs find(std::string_view field) const;
  // Sets it; kNever removes it.
  void set(std::string_view field, TimeMs deadline);
  void erase(std::string_view field);

  // kNever if no field has a deadline.
  TimeMs first() const { return order_.empty() ? kNever : order_.begin()->deadline; }
  TimeMs last() const { return order_.empty() ? kNever : order_.rbegin()->deadline; }
  // The field that is due first. There must be one. Equal deadlines have the order of the fields' bytes.
  const std::string& first_field() const { return order_.begin()->at->first; }

  // Calls `f(field, deadline)` for all fields that have one, in the order of the fields' bytes.
  template <class F>
  void for_each(F f) const {
    for (const auto& [field, deadline] : fields_) f(std::string_view(field), deadline);
  }

  std::unique_ptr<FieldDeadlines> copy() const;
  // Frees the next part. Returns true when the destructor may free the rest at once.
  bool free_some();
  void check_invariants() const;

 private:
  // A tree with nodes: no insertion moves the others, so that a field of a million costs as one of a few.
  using Fields = std::map<std::string, TimeMs, std::less<>>;
  struct Due {
    TimeMs deadline;
    Fields::const_iterator at;
  };
  struct Earlier {
    bool operator()(const Due& a, const Due& b) const {
      return a.deadline != b.deadline ? a.deadline < b.deadline : a.at->first < b.at->first;
    }
  };
  static uint64_t bytes_of(std::string_view field);
  void erase(Fields::const_iterator at);

  Fields fields_;
  absl::btree_set<Due, Earlier> order_;
  uint64_t bytes_ = sizeof(FieldDeadlines);
};

}  // namespace holdfast
