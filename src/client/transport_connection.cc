// Which connection a kind of server gets, and what they share.
#include "client/transport_connection.h"

#include <hiredis/hiredis.h>

#include <cstddef>

#include "client/transport_auth.h"
#include "client/transport_embedded.h"
#include "client/transport_socket.h"

namespace holdfast::client {

std::unique_ptr<Connection> open_connection(Loop& loop, const Address& address, ConnectionUser& user) {
  if (address.embedded) return std::make_unique<EmbeddedConnection>(loop, address.host, user);
  if (!address.password.empty()) return std::make_unique<AuthConnection>(loop, address, user);
  return std::make_unique<SocketConnection>(loop, address, user);
}

// hiredis reads at most nine levels, so the recursion is bounded.
Value value_of(const redisReply& reply) {
  Value value;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return {Value::Kind::kInteger, reply.integer, {}, {}};
    case REDIS_REPLY_STATUS:
      return {Value::Kind::kStatus, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_STRING:
      return {Value::Kind::kBulk, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_ERROR:
      return {Value::Kind::kError, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_ARRAY:
      break;
    default:
      return {Value::Kind::kNull, 0, {}, {}};
  }
  value.kind = Value::Kind::kArray;
  for (size_t i = 0; i < reply.elements; ++i) value.elements.push_back(value_of(*reply.element[i]));
  return value;
}

}  // namespace holdfast::client
