// The connections of the server, by the ids of their clients. The loop owns them.
#pragma once

#include <cstddef>
#include <vector>

#include "io/net/connection.h"

namespace holdfast {

class Connections {
 public:
  // Null if the client has no connection any more.
  Connection* find(ConnId id) const {
    if (id.slot >= by_slot_.size()) return nullptr;
    Connection* connection = by_slot_[id.slot];
    return connection != nullptr && connection->id() == id ? connection : nullptr;
  }
  // Each by its slot; null: a free slot. A call may close them.
  const std::vector<Connection*>& by_slot() const { return by_slot_; }
  // The number of clients, those included whose sockets only send their last replies.
  size_t count() const { return count_; }

  void add(ConnId id, Connection& connection);
  void remove(ConnId id);
  // Its client is about to be removed, but its socket continues to send the last replies.
  void linger(Connection& connection);
  void end_linger(Connection& connection);
  void close_all();

 private:
  std::vector<Connection*> by_slot_;
  std::vector<Connection*> lingering_;
  size_t count_ = 0;
};

}  // namespace holdfast
