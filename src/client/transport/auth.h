// A connection that introduces the client first: login by AUTH, then the protocol, then its name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/transport/connection.h"

namespace holdfast::client {

// The start of the text of broke() if the server rejects the login; the server's error follows it.
inline constexpr const char* kAuthPrefix = "AUTH: ";

// Returns the answer for a request whose connection broke. A rejected login becomes the server's error,
// because a retry gets the same answer; any other value stays as it is.
Value answer_of(const Value& value);

// Returns a name as CLIENT SETNAME takes it: each character that is not printable ASCII, and each blank,
// becomes '-'. At most 128 characters.
std::string connection_name(std::string_view text);

// With a login it opens only after the server has accepted the login. The protocol (HELLO) and the name
// (CLIENT SETNAME, CLIENT SETINFO) go out in the same packet, and their replies are dropped: so they add no
// round trip, and a server may reject them. Reports to Address::on_connection when it opens and when it
// breaks.
class AuthConnection final : public Connection, public ConnectionUser {
 public:
  AuthConnection(Loop& loop, const Address& address, ConnectionUser& user);

  bool is_open() const override { return open_; }
  void send(const std::vector<std::string>& argv) override { connection_->send(argv); }

 private:
  void opened() override;
  void answered(Value value) override;
  void broke(std::string why) override;
  void open();
  void end(std::string why);

  ConnectionUser& user_;
  const std::function<void(bool open)> on_connection_;
  const std::vector<std::string> login_;                      // empty: none
  const std::vector<std::vector<std::string>> introduction_;  // requests whose replies are dropped
  size_t to_drop_;
  Value refusal_;  // the first dropped reply that is an error; else kNull
  std::unique_ptr<Connection> connection_;
  bool open_ = false;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

}  // namespace holdfast::client
