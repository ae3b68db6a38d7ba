#include "client/transport/auth.h"

#include <string_view>
#include <utility>

#include "client/transport/socket.h"

namespace holdfast::client {
namespace {

// Returns the AUTH request. It has no user if the address has none: Redis before version 6 knows no users.
std::vector<std::string> login_of(const Address& address) {
  if (address.user.empty()) return {"AUTH", address.password};
  return {"AUTH", address.user, address.password};
}

}  // namespace

Value answer_of(const Value& value) {
  const std::string_view why = value.text;
  if (value.kind != Value::Kind::kLost || !why.starts_with(kAuthPrefix)) return value;
  return {Value::Kind::kError, 0, std::string(why.substr(std::string_view(kAuthPrefix).size())), {}};
}

AuthConnection::AuthConnection(Loop& loop, const Address& address, ConnectionUser& user)
    : user_(user),
      login_(login_of(address)),
      connection_(std::make_unique<SocketConnection>(loop, address, *this)) {}

void AuthConnection::answered(Value value) {
  if (open_) return user_.answered(std::move(value));
  if (value.kind == Value::Kind::kError) return user_.broke(kAuthPrefix + value.text);
  open_ = true;
  user_.opened();
}

}  // namespace holdfast::client
