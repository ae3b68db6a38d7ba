// A set as a tree of its members; see set_body.h.
#include "core/keyspace/set_body.h"

#include <algorithm>
#include <array>
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
  std::array<std::string_view, kCandidates> found;
  size_t n = 0;
  const size_t wanted = std::min(kCandidates, size());
  size_t left = wanted;
  const auto take = [&](std::string_view member) {
    if (n < wanted) found[n++] = member;
  };
  if (size() > kCandidates) scan(place >> (64U - HashBody::kCursorBits), left, take);
  left = wanted - n;
  if (n < wanted) scan(0, left, take);  // behind the last member comes the first one
  return found[choice % n];
}

}  // namespace holdfast
