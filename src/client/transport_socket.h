// A connection over a socket: looks the server's name up, connects, sends, hears. hiredis does the
// protocol, libuv the waiting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/transport_connection.h"

struct addrinfo;

namespace holdfast::client {

class SocketConnection final : public Connection {
 public:
  SocketConnection(Loop& loop, const Address& address, ConnectionUser& user);
  ~SocketConnection() override;

  bool is_open() const override { return open_; }
  void send(const std::vector<std::string>& argv) override;

  // For the callbacks of the libraries:
  struct Lookup;
  struct Socket;
  void note_lookup(int error, const addrinfo* found);
  void note_open();
  void note_value(Value value) { user_.answered(std::move(value)); }
  void note_end(const std::string& why);

 private:
  void look_up(const Address& address);
  void connect_next();
  bool connect(const std::string& host);
  void drop_socket();

  Loop& loop_;
  ConnectionUser& user_;
  int port_;
  std::vector<std::string> hosts_;  // its addresses, as text; those before next_ were tried
  size_t next_ = 0;
  std::string why_;           // the last failure
  Lookup* lookup_ = nullptr;  // lives until libuv calls back
  Socket* socket_ = nullptr;  // lives until libuv has closed its handle
  bool open_ = false;
  LoopTimer timer_;  // the next address is due: at once, or as this one does not answer
};

}  // namespace holdfast::client
