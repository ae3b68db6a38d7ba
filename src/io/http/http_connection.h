// One HTTP client: its socket, its input up to the end of a request, and the reply that the socket has not
// yet accepted. Serves one request after the other; while it sends a reply it reads nothing. Knows no path.
#pragma once

#include <uv.h>

#include <memory>
#include <string_view>

#include "core/base/buffer.h"
#include "core/base/types.h"
#include "io/http/access.h"
#include "io/http/answer.h"
#include "io/http/request_parser.h"
#include "io/net/pending_write.h"
#include "io/net/tls_stream.h"

namespace holdfast {

class HttpDoor;

// The time for a whole request, and for the client to take a reply.
inline constexpr DurationMs kHttpRequestTime{10'000};
// The time between two requests.
inline constexpr DurationMs kHttpIdleTime{60'000};
// Unread events of a client. The server closes a client that has more.
inline constexpr size_t kMaxUnreadEventBytes = size_t{256} << 10;

// Lives until the loop has run its close callback, which deletes it.
class HttpConnection {
 public:
  explicit HttpConnection(HttpDoor& door);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  uv_stream_t* stream() { return &handle_.stream; }
  const Visitor& visitor() const { return visitor_; }

  // Begins to read. The caller has accepted the socket into stream(). `tls` may be null.
  void start(Visitor visitor, std::shared_ptr<const TlsContext> tls);
  // Sends 503 as far as the socket takes it, and closes. Only for a connection that was never started.
  void reject(bool tls);

  // Serves the next request, if the input has one.
  void proceed();
  // Sends a reply that was held back.
  void send(const HttpAnswer& answer);
  // Sends an event. Only after a reply that streams.
  void push(std::string_view bytes);
  // Closes the connection if its time is over.
  void check_time(TimeMs now);
  void close();
  // The time of its start, or of the end of its last reply.
  TimeMs ready_since() const { return ready_since_; }
  // False for one that follows the events, or whose change waits for the disk.
  bool can_give_way() const { return state_ != State::kHeld && state_ != State::kStreaming; }

 private:
  enum class State { kReading, kHeld, kWriting, kStreaming, kDraining };

  static void on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept;
  static void on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) noexcept;
  static void on_written(uv_write_t* request, int status) noexcept;
  static void on_closed(uv_handle_t* handle) noexcept;

  void take(std::string_view bytes);
  bool decrypt(std::string_view bytes);
  void serve();
  void fail(int status);
  void write(std::string_view bytes);
  void flush();
  bool try_write();
  void end_of_answer();
  void read_again();
  void begin_to_drain();

  HttpDoor& door_;
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
  } handle_;
  Visitor visitor_;
  std::unique_ptr<TlsSession> tls_;  // null: no TLS
  RequestReader reader_;
  Buffer input_;  // of the request, not yet parsed
  Buffer out_;    // bytes that the socket has not accepted
  PendingWrite pending_;
  State state_ = State::kReading;
  TimeMs deadline_;
  TimeMs ready_since_;
  size_t ignored_bytes_ = 0;  // of input that nobody wants
  bool begun_ = false;        // a part of the request is there
  bool keeps_alive_ = false;
  bool closed_ = false;
};

}  // namespace holdfast
