// One connection to a server of any kind: sends requests, receives replies. It does not reconnect after it
// broke.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "client/base/value.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// How long a server may take to accept a connection, total over all of its addresses. Also how long an open
// connection may leave all requests without an answer.
inline constexpr DurationMs kSilence{5000};
// The most bytes that may wait to be sent; beyond it the connection ends.
inline constexpr size_t kMaxUnsentBytes = size_t{256} << 20;

// The callbacks of a connection. Each may destroy the connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  virtual void opened() = 0;
  // One reply, in the order of the requests. Messages for a subscriber (["message", channel, text] and the
  // like) come at any time.
  virtual void answered(Value value) = 0;
  // The connection ended; unanswered requests get no reply. The user may now only destroy the connection.
  virtual void broke(std::string why) = 0;
};

class Connection {
 public:
  Connection() = default;
  // Closes the connection. The user gets no more calls.
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  virtual bool is_open() const = 0;
  // Sends a request; only while the connection is open.
  virtual void send(const std::vector<std::string>& argv) = 0;
};

// Begins to connect to the kind of server that `address` names. Does not call `user` before it returns.
// `user` is not owned.
std::unique_ptr<Connection> open_connection(Loop& loop, const Address& address, ConnectionUser& user);

}  // namespace holdfast::client
