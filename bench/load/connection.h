// A connection of the load generator: sends bytes, and hands over replies of RESP2 one by one. What cannot
// be (an error where none is expected, a server that goes) ends the program with a line that says why.
#pragma once

#include <uv.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::bench {

// Where the server is: a Unix socket, or a port of 127.0.0.1.
struct Address {
  std::string socket;
  int port = 0;
};

[[noreturn]] void fail(const std::string& why);

class Connection {
 public:
  // Told of what comes; may send from there.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual ~User() = default;
    virtual void on_reply(std::string_view reply) = 0;
  };

  // Connects, and waits for it: a full backlog of the server is no error.
  Connection(uv_loop_t* loop, const Address& address, User& user);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  // Copies what the socket does not take at once.
  void send(std::string_view bytes);
  // The loop forgets it; it must live until the loop has run once more.
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
  std::string rest_;       // not yet taken by the socket
  std::string in_flight_;  // being written
  std::string input_;
  size_t used_ = 0;  // of input_
};

// The size of the first reply in `bytes`; 0: it has not come whole.
size_t reply_size(std::string_view bytes);

}  // namespace holdfast::bench
