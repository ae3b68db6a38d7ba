// A hash of any size: fields to values, in the order of the fields' hashes. The order is the same in every
// run with the same seed, and HSCAN's cursor stays valid however the hash changes. An entry of type
// kBigHash owns it. Its Keyspace must count every change of bytes(); hash_changes.h does that.
#pragma once

#include <absl/container/btree_set.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/types.h"
#include "core/keyspace/entry.h"
#include "core/keyspace/field_deadlines.h"
#include "core/keyspace/packed_hash.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

class HashBody final : public ValueBody {
 public:
  static constexpr EntryType kType = EntryType::kBigHash;
  static constexpr unsigned kCursorBits = 48;  // as SCAN's: a double holds it exactly

  explicit HashBody(uint64_t seed) : seed_(seed) {}

  uint64_t seed() const { return seed_; }
  size_t size() const override { return items_.size(); }  // with hidden fields, see field_deadlines.h
  size_t visible() const { return items_.size() - (deadlines_ == nullptr ? 0 : deadlines_->hidden()); }
  // Estimated memory of the hash.
  uint64_t bytes() const override {
    return sizeof(HashBody) + item_bytes_ + (deadlines_ == nullptr ? 0 : deadlines_->bytes());
  }

  // The view is valid until the field is set or erased.
  std::optional<std::string_view> find(std::string_view field) const;
  // The pair of a field. It stays in place while the field exists and its values have the same size.
  std::optional<PackedPair> find_pair(std::string_view field) const;
  // Adds a field, or writes over the value of one, which must have the same size. Before that calls
  // `change(pair)`; a result of false keeps the value. Returns the pair, and whether the field is new.
  template <class Change>
  std::pair<PackedPair, bool> put(std::string_view field, std::string_view value, Change change);
  // Returns whether the field is new. A field that was there loses its deadline.
  bool set(std::string_view field, std::string_view value);
  // Returns false if there is no such field.
  bool erase(std::string_view field);
  // Erases fields that exist and are not hidden. They may be views of the hash.
  void erase_all(std::span<const std::string_view> fields);

  // The deadlines of fields. Null if there is none: other hashes pay nothing for them.
  const FieldDeadlines* deadlines() const { return deadlines_.get(); }
  TimeMs deadline_of(std::string_view field) const;
  // Sets the deadline of a field, or removes it (kNever). `of_key` is the deadline of the hash. Returns
  // false if there is no such field.
  bool set_deadline(std::string_view field, TimeMs deadline, TimeMs of_key);
  // Sets the deadline of the hash, of which deadlines() must not be null.
  void set_key_deadline(TimeMs deadline) { deadlines_->of_key = deadline; }
  // Hides all fields that are due. Returns how many are hidden now for the first time.
  size_t hide_due(TimeMs now) { return deadlines_ == nullptr ? 0 : deadlines_->hide_due(now); }
  // Erases at most `most` hidden fields, the earliest first. Returns them. The next part is due at `next`.
  std::vector<std::string> erase_hidden(size_t most, TimeMs next);
  // deadlines() becomes null if no field has one any more.
  void drop_empty_deadlines() {
    if (deadlines_ != nullptr && deadlines_->empty()) deadlines_ = nullptr;
  }
  // Whether a deadline has passed for all fields.
  bool all_due(TimeMs now) const {
    return deadlines_ != nullptr && deadlines_->size() == size() && is_due(deadlines_->last(), now);
  }
  std::unique_ptr<ValueBody> copy() const override;
  // Copies the fields that are not hidden to an empty hash with the same seed.
  void copy_to(HashBody& other) const;
  std::string_view encoding() const override { return "hashtable"; }

  // Calls `f(field, value)` or `f(field, value, deadline)` for all fields that are not hidden.
  template <class F>
  void for_each(F f) const {
    for_each_item([&](const Item& item) {
      if (is_hidden(item)) return true;
      const PackedPair pair = item.get();
      if constexpr (std::is_invocable_v<F, std::string_view, std::string_view, TimeMs>) {
        f(pair.field, pair.value, item.deadline());
      } else {
        f(pair.field, pair.value);
      }
      return true;
    });
  }

  // Calls `f(pair)` for all pairs, which stay in place as those of find_pair().
  template <class F>
  void for_each_pair(F f) const {
    for_each_item([&](const Item& item) { return f(item.get()), true; });
  }
  // Calls `f(field, value)` for the fields that are not hidden, until it returns false.
  template <class F>
  void for_each_while(F f) const {
    for_each_item([&](const Item& item) {
      if (is_hidden(item)) return true;
      const PackedPair pair = item.get();
      return f(pair.field, pair.value);
    });
  }
  // The pair that is `skip` pairs behind a place in the order; behind the last pair comes the first one.
  PackedPair pair_behind(uint64_t place, size_t skip) const {
    auto at = items_.lower_bound(Key{{}, place >> (64U - kHashBits)});
    for (;; ++at, --skip) {
      if (at == items_.end()) at = items_.begin();
      if (skip == 0) return at->get();
    }
  }

  // Calls `f(field, value)` for the fields at and behind `cursor` until it has met at least `count` fields,
  // hidden ones included; `f` may lower `count`. Returns the next cursor; 0: done.
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const {
    size_t met = 0;
    uint64_t last = 0;
    for (auto it = items_.lower_bound(Key{{}, cursor << kBelowCursor}); it != items_.end(); ++it) {
      const uint64_t at = it->hash >> kBelowCursor;
      if (met >= count && at != last) return at;  // fields of one cursor value belong to one step
      const PackedPair pair = it->get();
      if (!is_hidden(*it)) f(pair.field, pair.value);
      ++met;
      last = at;
    }
    return 0;
  }

  void check_invariants() const override;

  bool free_some() override;
  bool can_save_in_parts() const override { return true; }
  void begin_save(ElementSink& sink) override;
  bool save_some(size_t count) override;
  void end_save() override { save_.reset(); }
  bool saving() const override { return save_ != nullptr; }

 private:
  static constexpr unsigned kHashBits = 62;
  static constexpr unsigned kBelowCursor = kHashBits - kCursorBits;

  struct Item {
    uint64_t hash : kHashBits;
    mutable uint64_t mark : 1;             // equal to mark_: needs no saving
    mutable uint64_t timed : 1;            // it has a deadline: 8 bytes behind the pair
    mutable std::unique_ptr<char[]> pair;  // a PackedPair; a new value does not change the order
    PackedPair get() const { return packed_pair_at(pair.get()); }
    TimeMs deadline() const {
      TimeMs at = kNever;
      if (timed) std::memcpy(&at, get().end, sizeof at);
      return at;
    }
    Key key() const { return {get().field, hash}; }
  };
  struct Less {
    using is_transparent = void;
    static bool less(const Key& a, const Key& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.bytes < b.bytes;
    }
    // The hashes nearly always differ, so the fields are rarely compared.
    bool operator()(const Item& a, const Item& b) const {
      return a.hash != b.hash ? a.hash < b.hash : less(a.key(), b.key());
    }
    bool operator()(const Item& a, const Key& b) const {
      return a.hash != b.hash ? a.hash < b.hash : less(a.key(), b);
    }
    bool operator()(const Key& a, const Item& b) const {
      return a.hash != b.hash ? a.hash < b.hash : less(a, b.key());
    }
  };

  using Items = absl::btree_set<Item, Less>;

  struct Save {
    ElementSink* sink;
    uint64_t next = 0;  // the hash from which save_some() continues
  };

  // Calls `f(item)` for all items, until it returns false. Their pairs are anywhere in memory, so the next
  // ones are fetched in time.
  template <class F>
  void for_each_item(F f) const {
    constexpr int kAhead = 8;
    auto ahead = items_.begin();
    const auto fetch = [&] {
      if (ahead != items_.end()) __builtin_prefetch((ahead++)->pair.get());
    };
    for (int i = 0; i < kAhead; ++i) fetch();
    for (const Item& item : items_) {
      fetch();
      if (!f(item)) return;
    }
  }

  Key key(std::string_view field) const { return {field, hash_bytes(field, seed_) >> (64U - kHashBits)}; }
  // The item of a field, and whether it was made now, with this value.
  std::pair<Items::iterator, bool> place_of(std::string_view field, std::string_view value);
  static uint64_t bytes_of(const PackedPair& pair);
  static uint64_t bytes_of(const Item& item) {
    return bytes_of(item.get()) + (item.timed ? sizeof(TimeMs) : 0);
  }
  Item make_item(uint64_t hash, std::string_view field, std::string_view value) const;
  // Before each change of an item.
  void save_first(const Item& item) {
    if (save_ != nullptr && item.mark != mark_) [[unlikely]]
      save_now(item);
  }
  void save_now(const Item& item);
  bool is_hidden(const Item& item) const { return item.timed && deadlines_->hides(item.deadline()); }
  void drop_deadline(const Item& item) {
    if (item.timed) [[unlikely]]
      drop_deadline_now(item);
  }
  void drop_deadline_now(const Item& item);
  void erase_item(Items::iterator at);

  uint64_t seed_;
  uint64_t item_bytes_ = 0;
  Items items_;
  // A snapshot flips the mark: as in Keyspace::begin_save(), the items of before then have the other one.
  uint64_t mark_ = 0;
  bool marks_missing_ = false;  // not all items have the mark of the last save
  std::unique_ptr<Save> save_;
  std::unique_ptr<FieldDeadlines> deadlines_;
};

template <class Change>
std::pair<PackedPair, bool> HashBody::put(std::string_view field, std::string_view value, Change change) {
  const auto [at, made] = place_of(field, value);
  const PackedPair pair = at->get();
  if (!made && change(pair)) {
    assert(pair.value.size() == value.size());
    save_first(*at);
    std::memcpy(at->pair.get() + (pair.value.data() - pair.begin), value.data(), value.size());
  }
  return {pair, made};
}

inline HashBody* hash_body_of(const Entry& e) {
  assert(type_of(e) == EntryType::kBigHash);
  return static_cast<HashBody*>(value_body_of(e));
}

// Null if no field of the value has a deadline.
inline const FieldDeadlines* field_deadlines_of(const Entry& e) {
  return type_of(e) == EntryType::kBigHash ? hash_body_of(e)->deadlines() : nullptr;
}
// Whether a deadline has passed for each field of a hash.
inline bool has_only_due_fields(const Entry& e, TimeMs now) {
  return type_of(e) == EntryType::kBigHash && hash_body_of(e)->all_due(now);
}
// The deadline of a whole value. That of its entry is earlier if a field has an earlier one.
inline TimeMs value_deadline_of(const Entry& e) {
  const FieldDeadlines* fields = field_deadlines_of(e);
  return fields == nullptr ? deadline_of(e) : fields->of_key;
}

}  // namespace holdfast
