// Keeps the places by owner and by end.
#include "core/state/empty_places.h"

namespace holdfast {

uint64_t EmptyPlaces::bytes_of(const Name& name) {
  constexpr uint64_t kIndexBytes = 64;
  return 2 * (sizeof(Name) + std::get<1>(name).size() + std::get<2>(name).size()) + sizeof(Place) +
         kIndexBytes;
}

void EmptyPlaces::keep(const Whose& whose, uint64_t rank, TimeMs end, size_t most) {
  forget(whose);
  while (places_.size() >= most && !places_.empty()) forget_first();
  if (most == 0) return;
  Name name(view_of(whose));
  const Place place{rank, {end, ++last_}};
  bytes_ += bytes_of(name);
  by_end_.emplace(place.end, name);
  places_.emplace(std::move(name), place);
}

uint64_t EmptyPlaces::find(const Whose& whose, TimeMs now) const {
  if (places_.empty()) [[likely]]
    return 0;
  const auto it = places_.find(view_of(whose));
  return it == places_.end() || is_due(it->second.end.first, now) ? 0 : it->second.rank;
}

void EmptyPlaces::forget(const Whose& whose) {
  const auto it = places_.find(view_of(whose));
  if (it == places_.end()) return;
  bytes_ -= bytes_of(it->first);
  by_end_.erase(it->second.end);
  places_.erase(it);
}

void EmptyPlaces::forget_first() {
  const auto first = by_end_.begin();
  bytes_ -= bytes_of(first->second);
  places_.erase(first->second);
  by_end_.erase(first);
}

void EmptyPlaces::end_some(TimeMs now) {
  constexpr size_t kMost = 400;
  for (size_t n = 0; n < kMost && !by_end_.empty() && is_due(by_end_.begin()->first.first, now); ++n)
    forget_first();
}

}  // namespace holdfast
