#include "client/transport/connection.h"

#include "client/transport/auth.h"

namespace holdfast::client {

std::unique_ptr<Connection> open_connection(Loop& loop, const Address& address, ConnectionUser& user) {
  return std::make_unique<AuthConnection>(loop, address, user);
}

}  // namespace holdfast::client
