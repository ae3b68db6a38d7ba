// One TCP connection as bytes, over TLS where it is wanted: connects to one address, reads, writes. What is
// written in one turn of the loop leaves at its end, together.
#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <string_view>

#include "client/transport/transport.h"
#include "core/base/buffer.h"
#include "tls/tls_session.h"

namespace holdfast::client {

// To whom a stream tells what happens. Each call may drop the stream.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void stream_open() = 0;
  // The bytes are there for the time of the call.
  virtual void stream_read(std::string_view bytes) = 0;
  // It is over, or never began, and may only be dropped now.
  virtual void stream_end(const std::string& why) = 0;
};

// Without a context: not over TLS.
struct StreamTls {
  std::shared_ptr<const TlsContext> context;
  std::string name;  // that the server's certificate must have
};

// Lives on after its owner has dropped it, until libuv has closed its handles; nothing is told any more.
class Stream {
 public:
  struct Drop {
    void operator()(Stream* stream) const { stream->close(); }
  };
  using Ptr = std::unique_ptr<Stream, Drop>;

  // Begins to connect. Null where that fails at once: then `why` says why.
  static Ptr connect(Loop& loop, const sockaddr& address, const StreamTls& tls, StreamUser& user,
                     std::string& why);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The server has accepted it; where it is not open yet, that is up to TLS.
  bool is_accepted() const { return accepted_; }
  // Only while it is open, which it is from stream_open() on.
  void write(std::string_view bytes);
  // Ends it, soon, as there is too much to send.
  void give_up() { end_soon("the server does not take what is sent"); }

 private:
  Stream(Loop& loop, const StreamTls& tls, StreamUser& user);
  ~Stream() = default;
  int begin(const sockaddr& address);
  void set_options();
  void close();

  static void on_connect(uv_connect_t* request, int status) noexcept;
  static void on_alloc(uv_handle_t* handle, size_t wanted, uv_buf_t* buf) noexcept;
  static void on_read(uv_stream_t* handle, ssize_t n, const uv_buf_t* buf) noexcept;
  static void on_turn_end(uv_prepare_t* handle) noexcept;
  static void on_write(uv_write_t* request, int status) noexcept;
  static void on_close(uv_handle_t* handle) noexcept;

  uv_stream_t* handle() { return reinterpret_cast<uv_stream_t*>(&tcp_); }
  void opened(int status);
  void take(std::string_view bytes);
  void take_encrypted(std::string_view bytes);
  void end_of_input(const std::string& why);
  void flush_later();
  void encrypt();
  void flush();
  void end(const std::string& why);
  void end_soon(std::string why);

  Loop& loop_;
  StreamUser* user_;  // null: dropped
  uv_tcp_t tcp_{};
  uv_prepare_t turn_end_{};  // runs while there is something to be flushed
  int handles_ = 2;          // that libuv has not closed
  uv_connect_t connect_{};
  uv_write_t write_{};
  std::unique_ptr<TlsSession> tls_;  // null: none
  const std::string name_;           // of the server's certificate
  Buffer plain_in_, plain_out_;      // decrypted, and to be encrypted
  Buffer queued_;                    // to be sent at the end of the turn, or behind
  Buffer sending_;                   // what the system has not taken at once
  bool writing_ = false;             // write_ is under way
  bool accepted_ = false;
  bool ended_ = false;
  std::string why_;  // it is about to end
};

}  // namespace holdfast::client
