// The hash that a key holds, whichever of its two forms it has: packed into the entry (packed_hash.h) while
// it is small, a HashBody (hash_body.h) from then on, as Redis does with listpack and hashtable. Reads it,
// and changes it through locks.h, so that WATCH, caches and queues hear of it; the keyspace event is the
// command's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/packed_hash.h"
#include "core/state/state.h"

namespace holdfast {

// A view of a key's hash, or of none, which is one without fields. Good until the hash is changed.
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

  size_t size() const { return body_ != nullptr ? body_->size() : packed_.size(); }
  std::optional<std::string_view> find(std::string_view field) const {
    return body_ != nullptr ? body_->find(field) : packed_.find(field);
  }
  // Calls `f(field, value)` for all fields: of a small hash in the order in which they came.
  template <class F>
  void for_each(F f) const {
    body_ != nullptr ? body_->for_each(f) : packed_.for_each(f);
  }
  // As HashBody::scan(); a small hash comes at once.
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

// Sets fields; `pairs` is field, value, field, value ... The key holds a hash, or nothing yet: `f` must be
// find_any()'s for it. The deadline stays. Returns how many fields are new.
size_t set_fields(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f,
                  std::span<const std::string_view> pairs, ConnId client);

// Erases fields of a hash; the key goes with the last, as by remove_key(). Returns how many there were.
size_t erase_fields(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f,
                    std::span<const std::string_view> fields, ConnId client);

// Gives the key a hash body, as put_value() does with other values.
void put_big_hash(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, std::unique_ptr<HashBody> body,
                  ConnId client);

// Takes the body out of a kBigHash, for put_big_hash() to give it to another key: nothing is copied. The
// entry is left with an empty small hash, which no key may show: remove_key() has to follow at once.
std::unique_ptr<HashBody> release_big_hash(Keyspace& keys, Keyspace::Found& f);

}  // namespace holdfast
