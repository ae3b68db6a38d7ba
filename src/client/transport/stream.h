// One TCP connection as bytes, optionally over TLS: connects to one address, reads, writes. All bytes
// written in one loop iteration are sent together at its end.
#pragma once

#include <uv.h>

#include <memory>
#include <string>
#include <string_view>

#include "client/transport/transport.h"
#include "core/base/buffer.h"
#include "tls/tls_session.h"

namespace holdfast::client {

// The callbacks of a stream. Each may drop the stream.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void stream_open() = 0;
  // `bytes` is valid during the call.
  virtual void stream_read(std::string_view bytes) = 0;
  // The stream ended or failed to open. The user may now only drop it.
  virtual void stream_end(const std::string& why) = 0;
};

// The TLS settings of a stream.
struct StreamTls {
  std::shared_ptr<const TlsContext> context;  // null: no TLS
  std::string name;                           // the name that the server's certificate must have
};

// After its owner has dropped it, the stream exists until libuv has closed its handles, but calls no
// callback of its user.
class Stream {
 public:
  struct Drop {
    void operator()(Stream* stream) const { stream->close(); }
  };
  using Ptr = std::unique_ptr<Stream, Drop>;

  // Begins to connect. Returns null if that fails at once; then `why` has the reason. `user` is not owned.
  static Ptr connect(Loop& loop, const sockaddr& address, const StreamTls& tls, StreamUser& user,
                     std::string& why);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Whether the server has accepted the connection. If it is not open yet, the TLS handshake is not
  // complete.
  bool is_accepted() const { return accepted_; }
  // Writes bytes; only while the stream is open, from stream_open() on.
  void write(std::string_view bytes);
  // Ends the stream soon, because too many bytes wait to be sent.
  void give_up() { end_soon("the server does not read the requests"); }

 private:
  Stream(Loop& loop, const StreamTls& tls, StreamUser& user);
  ~Stream() = default;
  int begin(const sockaddr& address);
  void set_options();
  void close();

  static void on_connect(uv_connect_t* request, int status) noexcept;
  static void on_alloc(uv_handle_t* handle, size_t wanted, uv_buf_t* buf) noexcept;
  static void on_read(uv_stream_t* handle, ssize_t n, const uv_buf_t* buf) noexcept;
  static void on_iteration_end(uv_prepare_t* handle) noexcept;
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
  StreamUser* user_;  // null after the drop
  uv_tcp_t tcp_{};
  uv_prepare_t iteration_end_{};  // end of the loop iteration; active while there are bytes to flush
  int handles_ = 2;               // handles that libuv has not closed
  uv_connect_t connect_{};
  uv_write_t write_{};
  std::unique_ptr<TlsSession> tls_;  // null: no TLS
  const std::string name_;           // the name in the server's certificate
  Buffer plain_in_, plain_out_;      // decrypted bytes, and bytes to encrypt
  Buffer queued_;                    // to send at the end of the loop iteration, or after sending_
  Buffer sending_;                   // bytes that the kernel did not take at once
  bool writing_ = false;             // write_ is under way
  bool accepted_ = false;
  bool ended_ = false;
  std::string why_;  // not empty: the stream ends soon, for this reason
};

}  // namespace holdfast::client
