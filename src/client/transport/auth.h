// A connection that opens only after the server has accepted the login by AUTH.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/transport/connection.h"

namespace holdfast::client {

// The start of the text of broke() if the server rejects the login; the server's error follows it.
inline constexpr const char* kAuthPrefix = "AUTH: ";

// Returns the answer for a request whose connection broke. A rejected login becomes the server's error,
// because a retry gets the same answer; any other value stays as it is.
Value answer_of(const Value& value);

class AuthConnection final : public Connection, public ConnectionUser {
 public:
  AuthConnection(Loop& loop, const Address& address, ConnectionUser& user);

  bool is_open() const override { return open_; }
  void send(const std::vector<std::string>& argv) override { connection_->send(argv); }

 private:
  void opened() override { connection_->send(login_); }
  void answered(Value value) override;
  void broke(std::string why) override { user_.broke(std::move(why)); }

  ConnectionUser& user_;
  const std::vector<std::string> login_;
  std::unique_ptr<Connection> connection_;
  bool open_ = false;
};

}  // namespace holdfast::client
