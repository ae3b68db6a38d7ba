// The functions that all links share, and the choice of the link for a server.
#include "client/transport/transport.h"

#include <utility>

#include "client/base/server_error.h"
#include "client/transport/embedded_engine.h"
#include "client/transport/link.h"
#include "client/transport/redis_link.h"

namespace holdfast::client {

std::unique_ptr<Link> make_link(Loop& loop, const Address& address) {
  if (address.redis) return std::make_unique<RedisLink>(loop, address);
  return std::make_unique<ServerLink>(loop, address);
}

std::shared_ptr<void> server_of(const Address& address) {
  return address.embedded ? EmbeddedEngine::use(address.host) : nullptr;
}

void Link::send(const std::vector<std::string>& argv, DurationMs timeout, Done done) {
  ask(argv, timeout, [done = std::move(done)](const Value& value) { done(reply_of(value)); });
}

Reply reply_of(const Value& value) {
  const auto& parts = value.elements;
  switch (value.kind) {
    case Value::Kind::kNull:
      return {Reply::Kind::kNull, 0, {}};
    case Value::Kind::kInteger:
      return {Reply::Kind::kInteger, value.integer, {}};
    case Value::Kind::kStatus:
    case Value::Kind::kBulk:
      return {Reply::Kind::kText, 0, value.text};
    case Value::Kind::kError:
      return {Reply::Kind::kError, 0, value.text, server_error_of(value)};
    case Value::Kind::kLost:
      return {Reply::Kind::kLost, 0, value.text};
    case Value::Kind::kArray:
    case Value::Kind::kPush:
      break;
  }
  const bool grant =
      parts.size() == 2 && parts[0].kind == Value::Kind::kBulk && parts[1].kind == Value::Kind::kInteger;
  if (grant) return {Reply::Kind::kGrant, parts[1].integer, parts[0].text};
  return {Reply::Kind::kError, 0, "ERR the reply is an array, but no grant", ServerError::kGeneral};
}

}  // namespace holdfast::client
