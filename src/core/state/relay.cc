// Keeps the slots by name and by use, and those of a key that were told of in a list.
#include "core/state/relay.h"

#include <cassert>

namespace holdfast {

size_t Relay::bytes_of(const Slot& s) {
  constexpr size_t kIndexBytes = 64;
  return sizeof(Slot) + s.key_bytes.size() + s.slot.size() + kIndexBytes;
}

Relay::Slot* Relay::find(const Place& place, std::string_view slot) const {
  const Name name{place, slot};
  const auto& part = by_name_.part(ByName()(name));
  const auto it = part.find(name);
  return it == part.end() ? nullptr : *it;
}

Relay::Slot* Relay::make(const Place& place, std::string_view slot) {
  Slot& s = slots_.emplace_back();
  s.db = place.db;
  s.key_bytes = place.key.bytes;
  s.key_hash = place.key.hash;
  s.slot = slot;
  s.self = std::prev(slots_.end());
  by_name_.part(ByName()(&s)).insert(&s);
  bytes_ += bytes_of(s);
  while (slots_.size() > kMostSlots || (bytes_ > kMostBytes && slots_.size() > 1)) forget_oldest();
  return &s;
}

void Relay::forget_oldest() {
  Slot* s = &slots_.front();
  bytes_ -= bytes_of(*s);
  unlink(s);
  by_name_.part(ByName()(s)).erase(s);
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
  const bool first = s->told && s->newer == nullptr;
  if (!first) {
    unlink(s);
    auto& part = newest_.part(s->key_hash);
    const auto next = part.find(s->place());
    if (next != part.end()) {
      s->older = *next;
      s->older->newer = s;
      part.erase(next);
    }
    part.insert(s);
  }
  s->told = s->over;
}

void Relay::unlink(Slot* s) {
  if (!s->told) return;
  if (s->newer == nullptr) {
    auto& part = newest_.part(s->key_hash);
    part.erase(s);
    if (s->older != nullptr) part.insert(s->older);
  }
  if (s->newer != nullptr) s->newer->older = s->older;
  if (s->older != nullptr) s->older->newer = s->newer;
  s->newer = s->older = nullptr;
}

bool Relay::is_over(const Place& place, const Attempt& attempt) const {
  const Slot* s = find(place, attempt.slot);
  return s != nullptr && s->over >= attempt.number;
}

std::vector<Attempt> Relay::newest(const Place& place, size_t most, std::string_view but) const {
  std::vector<Attempt> attempts;
  const auto& part = newest_.part(place.key.hash);
  const auto first = part.find(place);
  if (first == part.end()) return attempts;
  for (const Slot* s = *first; s != nullptr && attempts.size() < most; s = s->older) {
    if (s->slot != but) attempts.push_back({s->slot, *s->told});
  }
  return attempts;
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
    assert(find(s.place(), s.slot) == &s && (!s.told || *s.told <= s.over));
    assert(s.older == nullptr || s.older->newer == &s);
  }
  for (const auto& part : newest_) {
    for (const Slot* s : part) {
      assert(s->newer == nullptr);
      for (; s != nullptr; s = s->older) --told;
    }
  }
  assert(bytes == bytes_ && told == 0);
}

}  // namespace holdfast
