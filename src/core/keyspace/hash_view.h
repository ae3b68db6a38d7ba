// The hash of a key in either of its two forms: packed into the entry (packed_hash.h) while it is small,
// later a HashBody (hash_body.h). Redis does the same with listpack and hashtable.
#pragma once

#include <optional>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/packed_hash.h"

namespace holdfast {

// A view of a key's hash. A default view is a hash without fields. Valid until the hash changes.
class HashView {
 public:
  HashView() = default;
  explicit HashView(const Entry& e) {
    if (type_of(e) == EntryType::kBigHash) {
      body_ = hash_body_of(e);
    } else {
      packed_ = PackedHash(value_of(e));
    }
  }

  size_t size() const { return body_ != nullptr ? body_->visible() : packed_.size(); }
  std::optional<std::string_view> find(std::string_view field) const {
    return body_ != nullptr ? body_->find(field) : packed_.find(field);
  }
  // The deadline of a field; kNever if it has none.
  TimeMs deadline_of(std::string_view field) const {
    return body_ != nullptr ? body_->deadline_of(field) : kNever;
  }
  // Calls `f(field, value)` for all fields; in a small hash in the order of insertion.
  template <class F>
  void for_each(F f) const {
    body_ != nullptr ? body_->for_each(f) : packed_.for_each(f);
  }
  // Like HashBody::scan(); a small hash is scanned in one step.
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const {
    if (body_ != nullptr) return body_->scan(cursor, count, f);
    packed_.for_each(f);
    return 0;
  }

 private:
  const HashBody* body_ = nullptr;
  PackedHash packed_{{}};
};

}  // namespace holdfast
