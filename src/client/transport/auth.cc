#include "client/transport/auth.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "client/transport/embedded.h"
#include "client/transport/socket.h"
#include "core/base/version.h"

namespace holdfast::client {
namespace {

// Returns the AUTH request; empty without a password. It has no user if the address has none: Redis before
// version 6 knows no users.
std::vector<std::string> login_of(const Address& address) {
  if (address.password.empty()) return {};
  if (address.user.empty()) return {"AUTH", address.password};
  return {"AUTH", address.user, address.password};
}

// Redis before version 7.2 rejects CLIENT SETINFO.
std::vector<std::vector<std::string>> introduction_of(const Address& address) {
  std::vector<std::vector<std::string>> requests;
  if (address.resp3) requests.push_back({"HELLO", "3"});
  if (address.client_name.empty()) return requests;
  requests.push_back({"CLIENT", "SETNAME", address.client_name});
  requests.push_back({"CLIENT", "SETINFO", "LIB-NAME", "holdfast"});
  requests.push_back({"CLIENT", "SETINFO", "LIB-VER", std::string(kHoldfastVersion)});
  return requests;
}

std::unique_ptr<Connection> open_transport(Loop& loop, const Address& address, ConnectionUser& user) {
  if (address.embedded) return std::make_unique<EmbeddedConnection>(loop, address, user);
  return std::make_unique<SocketConnection>(loop, address, user);
}

}  // namespace

Value answer_of(const Value& value) {
  const std::string_view why = value.text;
  if (value.kind != Value::Kind::kLost || !why.starts_with(kAuthPrefix)) return value;
  return {Value::Kind::kError, 0, std::string(why.substr(std::string_view(kAuthPrefix).size())), {}};
}

std::string connection_name(std::string_view text) {
  constexpr size_t kMostBytes = 128;
  std::string name(text.substr(0, kMostBytes));
  std::ranges::replace_if(
      name, [](char c) { return c <= ' ' || c > '~'; }, '-');
  return name;
}

AuthConnection::AuthConnection(Loop& loop, const Address& address, ConnectionUser& user)
    : user_(user),
      on_connection_(address.on_connection),
      login_(login_of(address)),
      introduction_(introduction_of(address)),
      to_drop_(introduction_.size()),
      refusal_{Value::Kind::kNull, 0, {}, {}},
      connection_(open_transport(loop, address, *this)) {}

void AuthConnection::opened() {
  if (!login_.empty()) connection_->send(login_);
  for (const auto& request : introduction_) connection_->send(request);
  if (login_.empty()) open();
}

void AuthConnection::open() {
  open_ = true;
  if (on_connection_) on_connection_(true);
  user_.opened();
}

void AuthConnection::answered(Value value) {
  if (!open_) {
    if (value.kind == Value::Kind::kError) return end(kAuthPrefix + value.text);
    return open();
  }
  if (to_drop_ == 0) {
    // Redis takes a long request before the login for a breach of the protocol.
    const bool needs_login = refusal_.kind == Value::Kind::kError && refusal_.text.starts_with("NOAUTH");
    const bool is_breach =
        value.kind == Value::Kind::kError && value.text.starts_with("ERR Protocol error: unauthenticated");
    return user_.answered(needs_login && is_breach ? refusal_ : std::move(value));
  }
  --to_drop_;
  const bool refused = value.kind == Value::Kind::kError && refusal_.kind == Value::Kind::kNull;
  if (refused) refusal_ = std::move(value);
}

// A server that accepts no client (maxclients, protected mode) sends an error without a request and closes.
// That error is the answer to the user's first request, not to the introduction.
void AuthConnection::broke(std::string why) {
  const bool unasked = open_ && to_drop_ > 0 && refusal_.kind == Value::Kind::kError &&
                       !std::string_view(refusal_.text).starts_with("NOPERM");
  if (unasked) {
    const std::weak_ptr<const bool> life = life_;
    user_.answered(std::move(refusal_));
    if (life.expired()) return;
  }
  end(std::move(why));
}

void AuthConnection::end(std::string why) {
  if (on_connection_) on_connection_(false);
  user_.broke(std::move(why));
}

}  // namespace holdfast::client
