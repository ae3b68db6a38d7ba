// Which servers have a key: a ring of hashes with many points for each server (Karger et al., "Consistent
// hashing and random trees", 1997). The same set of servers gives the same ring in every client, in any
// order. An added or removed server moves only the keys that it gets or had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::client {

class Ring {
 public:
  // `names`: the names of the servers, without duplicates. `replicas`: how many servers have a key, from 1
  // to the number of names.
  Ring(const std::vector<std::string>& names, size_t replicas);

  // Returns the servers of the key as indexes into `names`, in the order of the ring.
  std::vector<size_t> servers_of(std::string_view key) const;

 private:
  static constexpr size_t kPointsEach = 128;
  size_t servers_;
  size_t replicas_;
  std::vector<std::pair<uint64_t, size_t>> points_;  // by hash
};

}  // namespace holdfast::client
