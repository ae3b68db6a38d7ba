// A tree of fields; see hash_body.h.
#include "core/keyspace/hash_body.h"

#include <algorithm>
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

// A pair with room for a deadline.
std::unique_ptr<char[]> new_timed_pair(std::string_view field, std::string_view value) {
  std::unique_ptr<char[]> pair(new char[packed_pair_bytes(field, value) + sizeof(TimeMs)]);
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
  if (it == items_.end() || is_hidden(*it)) return std::nullopt;
  return it->get();
}

std::optional<std::string_view> HashBody::find(std::string_view field) const {
  const auto it = items_.find(key(field));
  if (it == items_.end() || is_hidden(*it)) return std::nullopt;
  return it->get().value;
}

TimeMs HashBody::deadline_of(std::string_view field) const {
  if (deadlines_ == nullptr) return kNever;
  const auto it = items_.find(key(field));
  return it == items_.end() || is_hidden(*it) ? kNever : it->deadline();
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

// A hidden field is replaced as if it were new.
bool HashBody::set(std::string_view field, std::string_view value) {
  const auto [at, made] = place_of(field, value);
  if (made) return true;
  save_first(*at);
  const bool hidden = is_hidden(*at);
  drop_deadline(*at);
  const PackedPair old = at->get();
  if (old.value.size() == value.size()) {
    if (!value.empty())
      std::memcpy(at->pair.get() + (old.value.data() - old.begin), value.data(), value.size());
    return hidden;
  }
  item_bytes_ -= bytes_of(old);
  at->pair = new_pair(field, value);
  item_bytes_ += bytes_of(at->get());
  return hidden;
}

bool HashBody::erase(std::string_view field) {
  const auto it = items_.find(key(field));
  if (it == items_.end() || is_hidden(*it)) return false;
  erase_item(it);
  return true;
}

// In the order of the hashes, in which neighbours share the nodes of the tree: a search then finds most of
// them in the cache.
void HashBody::erase_all(std::span<const std::string_view> fields) {
  std::vector<Key> keys;
  keys.reserve(fields.size());
  for (const std::string_view field : fields) keys.push_back(key(field));
  std::ranges::sort(keys, {}, &Key::hash);
  for (const Key& k : keys) {
    const auto at = items_.find(k);
    assert(at != items_.end());
    erase_item(at);
  }
}

void HashBody::erase_item(Items::iterator at) {
  save_first(*at);
  drop_deadline(*at);
  item_bytes_ -= bytes_of(*at);
  items_.erase(at);
}

void HashBody::drop_deadline_now(const Item& item) {
  deadlines_->erase(item.deadline(), item.pair.get());
  item_bytes_ -= sizeof(TimeMs);
  item.timed = 0;
}

// A snapshot passes each field with the deadline that it has now.
bool HashBody::set_deadline(std::string_view field, TimeMs deadline, TimeMs of_key) {
  const auto it = items_.find(key(field));
  if (it == items_.end() || is_hidden(*it)) return false;
  save_first(*it);
  const bool has_room = it->timed != 0;
  drop_deadline(*it);
  if (deadlines_ == nullptr) {
    if (deadline == kNever) return true;
    deadlines_ = std::make_unique<FieldDeadlines>();
  }
  deadlines_->of_key = of_key;
  if (deadline == kNever) return true;
  const PackedPair pair = it->get();
  if (!has_room) it->pair = new_timed_pair(pair.field, pair.value);
  std::memcpy(it->pair.get() + (pair.end - pair.begin), &deadline, sizeof deadline);
  it->timed = 1;
  item_bytes_ += sizeof deadline;
  deadlines_->insert(deadline, it->pair.get());
  return true;
}

std::vector<std::string> HashBody::erase_hidden(size_t most, TimeMs next) {
  std::vector<std::string> erased;
  if (deadlines_ == nullptr) return erased;
  while (erased.size() < most && deadlines_->hidden() > 0) {
    erased.emplace_back(deadlines_->first_field());
    erase_item(items_.find(key(erased.back())));
  }
  deadlines_->erasure = next;
  return erased;
}

std::unique_ptr<ValueBody> HashBody::copy() const {
  auto other = std::make_unique<HashBody>(seed_);
  copy_to(*other);
  return other;
}

void HashBody::copy_to(HashBody& other) const {
  for (const Item& item : items_) {
    if (is_hidden(item)) continue;
    const PackedPair pair = item.get();
    const auto at =
        other.items_.emplace_hint(other.items_.end(), other.make_item(item.hash, pair.field, pair.value));
    other.item_bytes_ += bytes_of(at->get());
    if (item.timed) other.set_deadline(pair.field, item.deadline(), deadlines_->of_key);
  }
}

// Frees from the end, where no other items of a node move.
bool HashBody::free_some() {
  constexpr size_t kStepItems = 512;
  if (deadlines_ != nullptr && !deadlines_->free_some()) return false;
  if (items_.size() <= kStepItems) return true;
  auto from = items_.end();
  for (size_t i = 0; i < kStepItems; ++i) item_bytes_ -= bytes_of(*--from);
  items_.erase(from, items_.end());
  return false;
}

void HashBody::save_now(const Item& item) {
  const PackedPair pair = item.get();
  if (deadlines_ == nullptr) [[likely]] {
    save_->sink->put(pair.field, pair.value);
  } else {
    save_->sink->put_field(pair.field, pair.value, item.deadline());
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
  size_t timed = 0;
  const Item* before = nullptr;
  for (const Item& item : items_) {
    assert(item.hash == key(item.get().field).hash);
    assert(before == nullptr || Less()(*before, item));
    assert(marks_missing_ || item.mark == mark_);
    item_bytes += bytes_of(item);
    timed += item.timed;
    before = &item;
  }
  assert(item_bytes == item_bytes_);
  assert(timed == (deadlines_ == nullptr ? 0 : deadlines_->size()));
  if (deadlines_ != nullptr) deadlines_->check_invariants();
}

}  // namespace holdfast
