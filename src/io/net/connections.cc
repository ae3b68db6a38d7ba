// The table of connections.
#include "io/net/connections.h"

#include <cassert>

namespace holdfast {

void Connections::add(ConnId id, Connection& connection) {
  if (by_slot_.size() <= id.slot) by_slot_.resize(size_t{id.slot} + 1, nullptr);
  by_slot_[id.slot] = &connection;
  ++count_;
}

void Connections::remove(ConnId id) {
  assert(find(id) != nullptr);
  by_slot_[id.slot] = nullptr;
  --count_;
}

void Connections::linger(Connection& connection) {
  lingering_.push_back(&connection);
  ++count_;  // remove() subtracts it again
}

void Connections::end_linger(Connection& connection) {
  std::erase(lingering_, &connection);
  --count_;
}

void Connections::close_all() {
  for (Connection* connection : by_slot_) {
    if (connection != nullptr) connection->close();
  }
  while (!lingering_.empty()) lingering_.back()->close();
}

}  // namespace holdfast
