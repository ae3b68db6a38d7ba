// A connection that is not open before the server has let us in by AUTH.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/transport/connection.h"

namespace holdfast::client {

// How broke() begins where the server rejects the login; behind it stands the server's error.
inline constexpr const char* kNotLetIn = "AUTH: ";

// What a loss means for a request: a rejected login is the server's error, as a retry gets the same answer.
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
