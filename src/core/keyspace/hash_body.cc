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

HashBody::Item HashBody::make_item(uint64_t hash, std::string_view field, std::string_view value) const {
  Item item{};
  item.hash = hash & ((uint64_t{1} << kHashBits) - 1);
  item.mark = mark_ & 1U;
  item.pair = new_pair(field, value);
  return item;
}

std::pair<HashBody::Items::iterator, bool> HashBody::place_of(std::string_view field,
                                                              std::string_view value) {
  const Key k = key(field);
  const auto at = items_.lower_bound(k);
  if (at != items_.end() && at->hash == k.hash && at->get().field == field) return {at, false};
  const auto made = items_.emplace_hint(at, make_item(k.hash, field, value));
  item_bytes_ += bytes_of(made->get());
  return {made, true};
}

bool HashBody::set(std::string_view field, std::string_view value) {
  const auto [at, made] = place_of(field, value);
  if (made) return true;
  save_first(*at);
  forget_deadline(field);
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
  save_first(*it);
  forget_deadline(field);
  item_bytes_ -= bytes_of(it->get());
  items_.erase(it);
  return true;
}

// A snapshot passes each field with the deadline that it has now.
bool HashBody::set_deadline(std::string_view field, TimeMs deadline, TimeMs of_key) {
  const auto it = items_.find(key(field));
  if (it == items_.end()) return false;
  save_first(*it);
  if (deadlines_ == nullptr) {
    if (deadline == kNever) return true;
    deadlines_ = std::make_unique<FieldDeadlines>();
  }
  deadlines_->of_key = of_key;
  deadlines_->set(field, deadline);
  return true;
}

std::vector<std::string> HashBody::erase_due(TimeMs now, size_t most) {
  std::vector<std::string> erased;
  while (erased.size() < most && deadlines_ != nullptr && is_due(deadlines_->first(), now)) {
    erased.push_back(deadlines_->first_field());
    erase(erased.back());
  }
  return erased;
}

std::unique_ptr<ValueBody> HashBody::copy() const {
  auto other = std::make_unique<HashBody>(seed_);
  for (const Item& item : items_) {
    const PackedPair pair = item.get();
    other->items_.emplace_hint(other->items_.end(), other->make_item(item.hash, pair.field, pair.value));
  }
  other->item_bytes_ = item_bytes_;
  if (deadlines_ != nullptr) other->deadlines_ = deadlines_->copy();
  return other;
}

// Frees from the end, where no other items of a node move.
bool HashBody::free_some() {
  constexpr size_t kStepItems = 512;
  if (deadlines_ != nullptr && !deadlines_->free_some()) return false;
  if (items_.size() <= kStepItems) return true;
  auto from = items_.end();
  for (size_t i = 0; i < kStepItems; ++i) item_bytes_ -= bytes_of((--from)->get());
  items_.erase(from, items_.end());
  return false;
}

void HashBody::save_now(const Item& item) {
  const PackedPair pair = item.get();
  if (deadlines_ == nullptr) [[likely]] {
    save_->sink->put(pair.field, pair.value);
  } else {
    save_->sink->put_field(pair.field, pair.value, deadlines_->find(pair.field));
  }
  item.mark = mark_ & 1U;
}

void HashBody::begin_save(ElementSink& sink) {
  if (marks_missing_) {  // the snapshot before was aborted
    for (const Item& item : items_) item.mark = mark_ & 1U;
  }
  save_ = std::make_unique<Save>(Save{&sink});
  mark_ ^= 1U;
  marks_missing_ = true;
}

bool HashBody::save_some(size_t count) {
  size_t met = 0;
  for (auto it = items_.lower_bound(Key{{}, save_->next}); it != items_.end(); ++it) {
    if (met >= count && it->hash != save_->next) {  // items with the same hash belong to one step
      save_->next = it->hash;
      return false;
    }
    save_->next = it->hash;
    save_first(*it);
    ++met;
  }
  marks_missing_ = false;
  return true;
}

void HashBody::check_invariants() const {
  uint64_t item_bytes = 0;
  const Item* before = nullptr;
  for (const Item& item : items_) {
    assert(item.hash == key(item.get().field).hash);
    assert(before == nullptr || Less()(*before, item));
    assert(marks_missing_ || item.mark == mark_);
    item_bytes += bytes_of(item.get());
    before = &item;
  }
  assert(item_bytes == item_bytes_);
  if (deadlines_ == nullptr) return;
  deadlines_->check_invariants();
  assert(deadlines_->size() <= items_.size());
}

}  // namespace holdfast
