// A connection over a socket: looks up the server's name, tries its addresses, formats requests, reads
// replies.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "client/transport/connection.h"
#include "client/transport/reply_reader.h"
#include "client/transport/stream.h"

struct addrinfo;

namespace holdfast::client {

class SocketConnection final : public Connection, private StreamUser {
 public:
  SocketConnection(Loop& loop, const Address& address, ConnectionUser& user);
  ~SocketConnection() override;

  bool is_open() const override { return open_; }
  void send(const std::vector<std::string>& argv) override;

  // For the callback of libuv:
  struct Lookup;
  void record_lookup(int error, const addrinfo* found);

 private:
  void stream_open() override;
  void stream_read(std::string_view bytes) override;
  void stream_end(const std::string& why) override;

  void look_up(const std::string& host);
  void connect_next();
  void on_time();

  Loop& loop_;
  ConnectionUser& user_;
  const int port_;
  const StreamTls tls_;
  std::vector<sockaddr_storage> addresses_;  // addresses before next_ were tried
  size_t next_ = 0;
  std::string why_;           // the last failure
  Lookup* lookup_ = nullptr;  // lives until libuv calls back
  Stream::Ptr stream_;
  ReplyReader reader_;
  bool open_ = false;
  LoopTimer timer_;  // tries the next address: at once, or because the present one does not answer
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

}  // namespace holdfast::client
