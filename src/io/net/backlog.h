// The clients that have used their share of a loop iteration and have more complete requests. The next
// iteration continues with them, after the replies of the other clients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "io/net/connections.h"

namespace holdfast {

class Backlog {
 public:
  static constexpr uint64_t kShareNs = 100'000;      // for all clients over their share together
  static constexpr uint64_t kLeastShareNs = 50'000;  // for each of them, at least

  void add(ConnId id) { waiting_.push_back(id); }
  bool empty() const { return waiting_.empty(); }
  // One client's share of the time of an iteration. Clients over their share split one time slice.
  uint64_t share_ns() const {
    return std::max(kShareNs / std::max(running_.size(), waiting_.size() + 1), kLeastShareNs);
  }

  // Continues the clients that wait now.
  void run(const Connections& connections) {
    std::swap(waiting_, running_);
    for (const ConnId id : running_) {
      if (Connection* connection = connections.find(id)) connection->resume();
    }
    running_.clear();
  }

 private:
  std::vector<ConnId> waiting_;
  std::vector<ConnId> running_;  // the part that runs now
};

}  // namespace holdfast
