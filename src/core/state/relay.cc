// Keeps the slots by name, by use and by the time at which they were told of.
#include "core/state/relay.h"

#include <cassert>

namespace holdfast {

size_t Relay::bytes_of(const Slot& s) {
  constexpr size_t kIndexBytes = 96;
  return sizeof(Slot) + s.key.size() + s.slot.size() + kIndexBytes;
}

Relay::Slot* Relay::find(const Place& place, std::string_view slot) const {
  const auto it = by_name_.find(Name{place.db, place.key, slot});
  return it == by_name_.end() ? nullptr : *it;
}

Relay::Slot* Relay::make(const Place& place, std::string_view slot) {
  Slot& s = slots_.emplace_back();
  s.db = place.db;
  s.key = place.key;
  s.slot = slot;
  s.self = std::prev(slots_.end());
  by_name_.insert(&s);
  bytes_ += bytes_of(s);
  while (slots_.size() > kMostSlots || (bytes_ > kMostBytes && slots_.size() > 1)) forget_oldest();
  return &s;
}

void Relay::forget_oldest() {
  Slot* s = &slots_.front();
  bytes_ -= bytes_of(*s);
  by_name_.erase(s);
  if (s->told) told_.erase(s);
  slots_.pop_front();
}

std::optional<uint64_t> Relay::add(const Place& place, const Attempt& attempt, bool tell) {
  Slot* s = find(place, attempt.slot);
  const auto before = s == nullptr ? std::nullopt : std::optional(s->over);
  if (s == nullptr) s = make(place, attempt.slot);
  slots_.splice(slots_.end(), slots_, s->self);
  if (before && *before > attempt.number) return before;
  s->over = attempt.number;
  if (tell && s->told != attempt.number) tell_of(s);
  return before;
}

void Relay::tell_of(Slot* s) {
  if (s->told) told_.erase(s);
  s->told = s->over;
  s->told_serial = ++last_told_;
  told_.insert(s);
}

bool Relay::is_over(const Place& place, const Attempt& attempt) const {
  const Slot* s = find(place, attempt.slot);
  return s != nullptr && s->over >= attempt.number;
}

std::vector<std::string> Relay::newest(const Place& place, size_t most) const {
  std::vector<std::string> owners;
  auto it = told_.lower_bound(Told{place.db, place.key, 0});
  for (; it != told_.end() && owners.size() < most; ++it) {
    if ((*it)->db != place.db || (*it)->key != place.key) break;
    owners.push_back(owner_of({(*it)->slot, *(*it)->told}));
  }
  return owners;
}

void Relay::owe(const Place& place, const Attempt& attempt) {
  if (Slot* s = find(place, attempt.slot)) s->settles = attempt.number;
}

bool Relay::settle(const Place& place, const Attempt& attempt) {
  Slot* s = find(place, attempt.slot);
  if (s == nullptr || s->settles != attempt.number) return false;
  s->settles.reset();
  return true;
}

void Relay::check_invariants() const {
  assert(by_name_.size() == slots_.size());
  size_t bytes = 0;
  size_t told = 0;
  for (const Slot& s : slots_) {
    bytes += bytes_of(s);
    told += s.told ? 1 : 0;
    assert(find({s.db, s.key}, s.slot) == &s && (!s.told || *s.told <= s.over));
  }
  assert(bytes == bytes_ && told == told_.size());
}

}  // namespace holdfast
