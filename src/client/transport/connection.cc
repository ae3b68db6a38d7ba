// The choice of the connection for a kind of server.
#include "client/transport/connection.h"

#include "client/transport/auth.h"
#include "client/transport/embedded.h"
#include "client/transport/socket.h"

namespace holdfast::client {

std::unique_ptr<Connection> open_connection(Loop& loop, const Address& address, ConnectionUser& user) {
  if (address.embedded) return std::make_unique<EmbeddedConnection>(loop, address.host, user);
  if (!address.password.empty()) return std::make_unique<AuthConnection>(loop, address, user);
  return std::make_unique<SocketConnection>(loop, address, user);
}

}  // namespace holdfast::client
