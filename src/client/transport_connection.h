// One connection to a server: looks its name up, connects, sends, hears. It does not come back after it
// broke.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/transport.h"
#include "client/value.h"

struct addrinfo;

namespace holdfast::client {

// How long a server may take to accept a connection, over all of its addresses, and how long one may leave
// all requests without an answer.
inline constexpr DurationMs kSilence{5000};

// To whom a connection tells what happens. Each call may destroy the connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  virtual void opened() = 0;
  // Replies come in the order of the requests; those of a subscriber (["message", channel, text] and the
  // like) whenever there is something.
  virtual void answered(Value value) = 0;
  // It is over; what was not answered will not be. The connection may only be destroyed now.
  virtual void broke(std::string why) = 0;
};

class Connection {
 public:
  // Tells `user` of nothing before this has returned.
  Connection(Loop& loop, const Address& address, ConnectionUser& user);
  // Closes it. Nothing more is told.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_open() const { return open_; }
  // Only while it is open. One that has subscribed sends only SUBSCRIBE and UNSUBSCRIBE of one channel
  // each, and keeps at least one: else hiredis no longer takes it for a subscriber.
  void send(const std::vector<std::string>& argv);

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
