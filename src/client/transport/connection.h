// One connection to a server, of whatever kind: sends requests, hears replies. It does not come back after
// it broke.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/base/value.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// How long a server may take to accept a connection, over all of its addresses, and how long one may leave
// all requests without an answer.
inline constexpr DurationMs kSilence{5000};
// How much may wait to be sent; beyond it the connection is over.
inline constexpr size_t kMaxUnsentBytes = size_t{256} << 20;

// To whom a connection tells what happens. Each call may destroy the connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  virtual void opened() = 0;
  // Replies come in the order of the requests; those of a subscriber (["message", channel, text] and the
  // like) whenever there is something.
  virtual void answered(Value value) = 0;
  // It is over; what was not answered will not be. The connection may only be destroyed now.
  virtual void broke(std::string why) = 0;
};

class Connection {
 public:
  Connection() = default;
  // Closes it. Nothing more is told.
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual bool is_open() const = 0;
  // Only while it is open.
  virtual void send(const std::vector<std::string>& argv) = 0;
};

// Begins to connect, by the kind of server that `address` names. Tells `user` of nothing before this has
// returned.
std::unique_ptr<Connection> open_connection(Loop& loop, const Address& address, ConnectionUser& user);

}  // namespace holdfast::client
