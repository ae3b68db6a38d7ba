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

#include "core/base/types.h"
#include "core/keyspace/entry.h"

namespace holdfast {

// Takes the elements of a body, for a snapshot. `value` is that of a field of a hash, or the
// score in a sorted set (ZsetBody::score_of()); else it is empty.
class ElementSink {
 public:
  ElementSink() = default;
  ElementSink(const ElementSink&) = delete;
  ElementSink& operator=(const ElementSink&) = delete;
  virtual ~ElementSink() = default;
  virtual void put(std::string_view element, std::string_view value) = 0;
  // A field of a hash some of whose fields have a deadline; kNever: this one has none.
  virtual void put_field(std::string_view field, std::string_view value, TimeMs /*deadline*/) {
    put(field, value);
  }
};

class ValueBody {
 public:
  ValueBody() = default;
  ValueBody(const ValueBody&) = delete;
  ValueBody& operator=(const ValueBody&) = delete;
  virtual ~ValueBody() = default;

  virtual size_t size() const = 0;  // number of elements
  // Estimated memory. The Keyspace must count every change of it: see change_body.h.
  virtual uint64_t bytes() const = 0;
  virtual std::unique_ptr<ValueBody> copy() const = 0;
  // The name of the encoding that OBJECT ENCODING shows: that of Redis 7.0 for such a value.
  virtual std::string_view encoding() const = 0;
  virtual void check_invariants() const = 0;

  // Frees the next part of a body that is no longer needed. Returns true when the rest is so small that the
  // destructor may free it at once. No other function but bytes() may be called after the first call.
  virtual bool free_some() { return true; }

  // A snapshot of a large body, in parts. From begin_save() on, each element that is present now is passed
  // to `sink` once: by save_some(), or earlier, before it changes. A body that cannot do so is saved whole.
  virtual bool can_save_in_parts() const { return false; }
  virtual void begin_save(ElementSink&) {}
  // Passes about `count` elements. Returns true when all have been passed.
  virtual bool save_some(size_t /*count*/) { return true; }
  // Ends the save, complete or not.
  virtual void end_save() {}
  virtual bool saving() const { return false; }
};

// The body of an entry that must be of the type of Body.
template <std::derived_from<ValueBody> Body>
Body& body_of(const Entry& e) {
  assert(type_of(e) == Body::kType);
  return static_cast<Body&>(*value_body_of(e));
}

}  // namespace holdfast
