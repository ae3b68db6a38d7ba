// Clients for tests: one on a plain socket for actions that a library does not offer (half requests, half
// closes, resets), and hiredis for usual requests. kPatience limits every wait.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "process.h"
#include "server_harness.h"

struct redisContext;

namespace holdfast::integration {

// A connected, non-blocking socket. Throws std::runtime_error if it cannot connect.
Fd connect_tcp(int port, const std::string& address = "127.0.0.1");
Fd connect_unix(const std::string& path);

// The length of the first reply in `bytes`, RESP2 or RESP3; 0 if it is incomplete.
size_t reply_size(std::string_view bytes);

// A request as clients frame it: "*1\r\n$4\r\nPING\r\n".
std::string frame(std::initializer_list<std::string_view> words);

class Client {
 public:
  explicit Client(const Server& server) : Client(connect_tcp(server.port())) {}
  explicit Client(Fd socket) : socket_(std::move(socket)) {}

  // Sends all bytes. Throws if the server does not read them, or has closed the connection.
  void send(std::string_view bytes);
  // The same, but returns false if the connection is closed.
  bool try_send(std::string_view bytes);

  // The next reply, as transcripts write it: `["alice", 1]`; "(closed)" if the connection ends instead.
  std::string reply();
  // Sends an inline command and returns its reply.
  std::string ask(std::string_view line);
  // All bytes up to the connection's end.
  std::string read_to_end();
  // Whether no byte has come. This is conclusive only after another client got a reply to a later request.
  bool heard_nothing();

  // Writes and reads at the same time until all of `input` is sent and `expected` has come. Returns an
  // empty string, or how the received bytes differ.
  std::string exchange(std::string_view input, std::string_view expected);

  // Ends the stream to the server, as `nc -N` does, and continues to read.
  void half_close();
  // Ends the connection with RST, as a crashed peer does.
  void reset();
  void close() { socket_.close(); }
  int fd() const { return socket_.get(); }

 private:
  bool read_more(Clock::time_point deadline);
  bool wait(short events, Clock::time_point deadline);

  Fd socket_;
  std::string inbox_;
  size_t at_ = 0;  // how much of the inbox has been returned
  bool ended_ = false;
};

// `["alice", 17]` -> 17; 0 if the reply is not a grant to that owner.
int64_t token_of(const std::string& reply, std::string_view owner);

// The number after "name:" in INFO.
int64_t info(Client& client, std::string_view section, std::string_view name);
// Polls INFO until this many connections are blocked: the server may not have read the requests of other
// connections yet, and serves connections in any order.
void until_blocked(Client& client, int64_t connections);
// The same for INFO's lock_waiters, which counts ASYNC ones too.
void until_waiting(Client& client, int64_t waiters);

// hiredis, freed at the end. Replies as text, in the form of Client::reply().
class Redis {
 public:
  Redis(const std::string& address, int port);
  explicit Redis(const std::string& unix_path);
  std::string ask(std::initializer_list<std::string_view> words);

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> context_;
};

}  // namespace holdfast::integration
