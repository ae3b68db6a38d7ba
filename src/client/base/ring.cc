// Points on the ring, and the walk along it.
#include "client/base/ring.h"

#include <algorithm>
#include <cassert>

#include "core/base/hash.h"

namespace holdfast::client {

namespace {

// Returns the place on the ring. The function must never change: clients of all versions must agree.
uint64_t place_of(std::string_view bytes) { return hash_bytes(bytes, 0); }

}  // namespace

Ring::Ring(const std::vector<std::string>& names, size_t replicas)
    : servers_(names.size()), replicas_(replicas) {
  assert(replicas >= 1 && replicas <= names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t n = 0; n < kPointsEach; ++n) {
      points_.emplace_back(place_of(names[i] + "#" + std::to_string(n)), i);
    }
  }
  // The name decides the order of two servers at one place, so the order in the address does not matter.
  std::sort(points_.begin(), points_.end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : names[a.second] < names[b.second];
  });
}

std::vector<size_t> Ring::servers_of(std::string_view key) const {
  std::vector<size_t> servers;
  auto point = std::lower_bound(points_.begin(), points_.end(), std::pair(place_of(key), size_t{0}));
  while (servers.size() < replicas_) {
    if (point == points_.end()) point = points_.begin();
    if (std::find(servers.begin(), servers.end(), point->second) == servers.end())
      servers.push_back(point->second);
    ++point;
  }
  return servers;
}

}  // namespace holdfast::client
