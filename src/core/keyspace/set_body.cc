// A set as a tree of its members; see set_body.h.
#include "core/keyspace/set_body.h"

#include <algorithm>
#include <cassert>

#include "core/base/parse.h"

namespace holdfast {

bool SetBody::add(std::string_view member) {
  if (!members_.set(member, {})) return false;
  integers_ = integers_ && size() <= intset_entries_ && parse_int(member);
  return true;
}

std::unique_ptr<ValueBody> SetBody::copy() const {
  auto other = std::make_unique<SetBody>(members_.seed(), intset_entries_);
  for_each([&](std::string_view member) { other->members_.set(member, {}); });
  other->integers_ = integers_;
  return other;
}

std::string_view SetBody::random_member(uint64_t place, uint64_t choice) const {
  constexpr size_t kCandidates = 16;
  assert(size() > 0);
  return members_.pair_behind(place, choice % std::min(kCandidates, size())).field;
}

}  // namespace holdfast
