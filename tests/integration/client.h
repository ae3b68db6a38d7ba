// Clients for tests: one on a plain socket, which can do what a library would not (half requests, half
// closes, resets), and hiredis for what a library does. Every wait is bounded by kPatience.
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

// A connected, non-blocking socket. Throws std::runtime_error where there is nobody.
Fd connect_tcp(int port, const std::string& address = "127.0.0.1");
Fd connect_unix(const std::string& path);

// The length of the first reply in `bytes`, RESP2 or RESP3; 0: it is not complete.
size_t reply_size(std::string_view bytes);

// A request as clients frame it: "*1\r\n$4\r\nPING\r\n".
std::string frame(std::initializer_list<std::string_view> words);

class Client {
 public:
  explicit Client(const Server& server) : Client(connect_tcp(server.port())) {}
  explicit Client(Fd socket) : socket_(std::move(socket)) {}

  // Sends all bytes; throws if the server takes them not, or has closed.
  void send(std::string_view bytes);
  // The same, but a closed connection is no fault: then false.
  bool try_send(std::string_view bytes);

  // The next reply, as transcripts write it: `["alice", 1]`; "(closed)" if the connection ends instead.
  std::string reply();
  // Sends an inline command and returns its reply.
  std::string ask(std::string_view line);
  // All bytes up to the connection's end.
  std::string read_to_end();
  // Whether no byte has come. It tells something only after a later request of somebody else was answered.
  bool heard_nothing();

  // Writes and reads at the same time until all of `input` is sent and `expected` has come. Empty if so,
  // else how what came differs.
  std::string exchange(std::string_view input, std::string_view expected);

  // Ends the stream to the server, as `nc -N` does, and goes on reading.
  void half_close();
  // Ends the connection with RST: what a crashed peer looks like.
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

// `["alice", 17]` -> 17; 0 if this is no grant to that owner.
int64_t token_of(const std::string& reply, std::string_view owner);

// The number behind "name:" in INFO.
int64_t info(Client& client, std::string_view section, std::string_view name);
// Waits until so many connections are blocked, by asking: requests on other connections may not have been
// read yet, and those are served in any order.
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
