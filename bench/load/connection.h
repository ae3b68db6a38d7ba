// A connection of the load generator: sends bytes, and passes on the replies of RESP2 one by one. An
// unexpected event (an error reply, a disconnected server) ends the program with one line that says why.
#pragma once

#include <uv.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::bench {

// The address of the server: a Unix socket, or a port of 127.0.0.1.
struct Address {
  std::string socket;
  int port = 0;
};

[[noreturn]] void fail(const std::string& why);

class Connection {
 public:
  // Receives the replies; may call send() from on_reply().
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual ~User() = default;
    virtual void on_reply(std::string_view reply) = 0;
  };

  // Connects synchronously: a full backlog of the server is no error.
  Connection(uv_loop_t* loop, const Address& address, User& user);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  // Copies the bytes that the socket does not accept at once.
  void send(std::string_view bytes);
  // Closes the socket. The object must live until the loop has run once more.
  void close();

 private:
  static void on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf);
  static void on_written(uv_write_t* request, int status);
  uv_stream_t* stream() { return &handle_.stream; }
  void write_rest();
  void take_replies();

  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
  } handle_;
  User& user_;
  uv_write_t write_request_;
  std::string rest_;       // not yet accepted by the socket
  std::string in_flight_;  // being written
  std::string input_;
  size_t used_ = 0;  // consumed bytes of input_
};

// Returns the size of the first reply in `bytes`; 0 if it is incomplete.
size_t reply_size(std::string_view bytes);

}  // namespace holdfast::bench
