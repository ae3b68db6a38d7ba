// A connection to the engine inside the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/transport/connection.h"
#include "client/transport/embedded_engine.h"
#include "client/transport/reply_reader.h"

namespace holdfast::client {

class EmbeddedConnection final : public Connection {
 public:
  EmbeddedConnection(Loop& loop, const Address& address, ConnectionUser& user);
  ~EmbeddedConnection() override;

  bool is_open() const override { return open_; }
  void send(const std::vector<std::string>& argv) override { engine_->send(id_, argv); }

  // Reads the mailbox and passes its replies on. On the loop's thread.
  static void receive(const std::shared_ptr<Mailbox>& mailbox);

 private:
  std::vector<Value> read(const std::string& replies);

  ConnectionUser& user_;
  const std::shared_ptr<EmbeddedEngine> engine_;
  const std::shared_ptr<Mailbox> mailbox_;
  const ConnId id_;
  ReplyReader reader_;
  bool open_ = false;
};

}  // namespace holdfast::client
