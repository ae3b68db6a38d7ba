// Listens on sockets, and accepts a limited number of clients in each loop iteration: clients that connect
// and disconnect without end must not delay the replies of other clients. Does not know what a client is.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/net/listen.h"

namespace holdfast {

class Acceptor {
 public:
  static constexpr size_t kMostInIteration = 8;

  struct Hooks {
    // A client waits at `listening`: the hook begins the loop iteration, and takes the client with
    // uv_accept().
    std::function<void(const ListenSocket& socket, uv_stream_t* listening)> accept;
    std::function<void(std::string_view why)> fail;  // no client can be accepted at present
  };

  // Takes ownership of the sockets.
  Acceptor(std::vector<ListenSocket> sockets, Hooks hooks);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  Result<Done> listen(uv_loop_t* loop, int backlog);
  std::string names() const;

  // Whether clients wait for the next iteration. It accepts them by accept_waiting(); libuv reports no
  // other client of their sockets before.
  bool some_wait() const { return some_wait_; }
  void accept_waiting();
  void end_iteration() { accepted_ = 0; }

  // Closes the sockets, and removes the files of Unix sockets. The loop must run once more.
  void close();

 private:
  struct Listener {
    Acceptor* acceptor;
    ListenSocket socket;
    bool waiting = false;  // has a client to accept in the next iteration
    union {
      uv_handle_t handle;
      uv_stream_t stream;
      uv_tcp_t tcp;
      uv_pipe_t pipe;
    } uv;
  };

  static void on_connection(uv_stream_t* stream, int status) noexcept;
  Result<Done> listen(Listener& listener, uv_loop_t* loop, int backlog);
  void accept(Listener& listener);

  Hooks hooks_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  size_t accepted_ = 0;  // in this iteration
  bool some_wait_ = false;
};

}  // namespace holdfast
