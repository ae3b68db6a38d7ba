// The base of all values that do not fit into their entry: large hashes, lists, sets and sorted sets. The
// entry holds a pointer to the body and owns it. The Keyspace, journal, snapshot, RENAME, COPY and MEMORY
// treat all bodies alike through this class.
//
// To add a type: give it an EntryType (entry.h) and a body with `kType`; write its changes with
// lock/body_changes.h and one journal record for each kind of change (journal_record.h); add it to the
// switches that the compiler then reports, and to Restore::begin_collection().
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/keyspace/entry.h"

namespace holdfast {

class ValueBody {
 public:
  ValueBody() = default;
  ValueBody(const ValueBody&) = delete;
  ValueBody& operator=(const ValueBody&) = delete;
  virtual ~ValueBody() = default;

  virtual size_t size() const = 0;  // number of elements
  // Estimated memory. The Keyspace must count every change of it: see change_body() in body_changes.h.
  virtual uint64_t bytes() const = 0;
  virtual std::unique_ptr<ValueBody> copy() const = 0;
  // The name of the encoding that OBJECT ENCODING shows: that of Redis 7.0 for such a value.
  virtual std::string_view encoding() const = 0;
  virtual void check_invariants() const = 0;
};

// The body of an entry that must be of the type of Body.
template <std::derived_from<ValueBody> Body>
Body& body_of(const Entry& e) {
  assert(type_of(e) == Body::kType);
  return static_cast<Body&>(*value_body_of(e));
}

}  // namespace holdfast
