// A tree of fields; see hash_body.h.
#include "core/keyspace/hash_body.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace holdfast {

namespace {

std::unique_ptr<char[]> new_pair(std::string_view field, std::string_view value) {
  std::unique_ptr<char[]> pair(new char[packed_pair_bytes(field, value)]);
  put_packed_pair(pair.get(), field, value);
  return pair;
}

}  // namespace

// The overhead of a pair: its item in a node of the tree, which is about three quarters full, and that of
// the allocator.
uint64_t HashBody::bytes_of(const PackedPair& pair) {
  constexpr uint64_t kBeside = sizeof(Item) * 4 / 3 + 16;
  return static_cast<uint64_t>(pair.end - pair.begin) + kBeside;
}

std::optional<PackedPair> HashBody::find_pair(std::string_view field) const {
  const auto it = items_.find(key(field));
  if (it == items_.end()) return std::nullopt;
  return it->get();
}

std::optional<std::string_view> HashBody::find(std::string_view field) const {
  const auto it = items_.find(key(field));
  if (it == items_.end()) return std::nullopt;
  return it->get().value;
}

std::pair<HashBody::Items::iterator, bool> HashBody::place_of(std::string_view field,
                                                              std::string_view value) {
  const Key k = key(field);
  const auto at = items_.lower_bound(k);
  if (at != items_.end() && at->hash == k.hash && at->get().field == field) return {at, false};
  const auto made = items_.emplace_hint(at, Item{k.hash, new_pair(field, value)});
  item_bytes_ += bytes_of(made->get());
  return {made, true};
}

std::pair<PackedPair, bool> HashBody::find_or_insert(std::string_view field, std::string_view value) {
  const auto [at, made] = place_of(field, value);
  return {at->get(), made};
}

bool HashBody::set(std::string_view field, std::string_view value) {
  const auto [at, made] = place_of(field, value);
  if (made) return true;
  const PackedPair old = at->get();
  if (old.value.size() == value.size()) {
    if (!value.empty())
      std::memcpy(at->pair.get() + (old.value.data() - old.begin), value.data(), value.size());
    return false;
  }
  item_bytes_ -= bytes_of(old);
  at->pair = new_pair(field, value);
  item_bytes_ += bytes_of(at->get());
  return false;
}

bool HashBody::erase(std::string_view field) {
  const auto it = items_.find(key(field));
  if (it == items_.end()) return false;
  item_bytes_ -= bytes_of(it->get());
  items_.erase(it);
  return true;
}

std::unique_ptr<ValueBody> HashBody::copy() const {
  auto other = std::make_unique<HashBody>(seed_);
  for (const Item& item : items_) {
    const PackedPair pair = item.get();
    other->items_.emplace_hint(other->items_.end(), Item{item.hash, new_pair(pair.field, pair.value)});
  }
  other->item_bytes_ = item_bytes_;
  return other;
}

void HashBody::check_invariants() const {
  uint64_t item_bytes = 0;
  const Item* before = nullptr;
  for (const Item& item : items_) {
    assert(item.hash == key(item.get().field).hash);
    assert(before == nullptr || Less()(*before, item));
    item_bytes += bytes_of(item.get());
    before = &item;
  }
  assert(item_bytes == item_bytes_);
}

}  // namespace holdfast
