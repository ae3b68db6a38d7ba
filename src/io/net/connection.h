// One client: its socket, unparsed input, parser, and the replies that the socket has not yet accepted.
// Reads once in a wake-up, passes requests to the engine, writes once in a loop iteration. Knows no
// command.
#pragma once

#include <uv.h>

#include <memory>
#include <optional>
#include <string_view>

#include "core/base/buffer.h"
#include "core/codec/request_batch.h"
#include "core/codec/resp.h"
#include "core/engine/engine.h"
#include "io/net/held_replies.h"
#include "io/net/output_gate.h"
#include "io/net/pending_write.h"
#include "io/net/tls_stream.h"

namespace holdfast {

class Server;

// Limits of the work for one client before the server serves the next.
inline constexpr size_t kReadBytes = size_t{64} << 10;    // in one read; also the size of the shared buffer
inline constexpr size_t kMaxReadBytes = size_t{1} << 20;  // the same, inside one large argument
inline constexpr size_t kRunReplyBytes = size_t{1} << 20;  // replies made in one run of requests
// Largest buffer that an idle connection keeps; a larger one is freed.
inline constexpr size_t kKeptBytes = size_t{16} << 10;

// Why a connection is closed: see memory_share.h.
inline constexpr std::string_view kExceedsShare =
    "its unfinished requests and names exceed its share of maxmemory";

// Lives from start() until the loop has run its close callback, which deletes it. After close() only the
// loop may use it.
class Connection {
 public:
  enum class Kind { kTcp, kUnix };

  Connection(Server& server, Kind kind);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uv_stream_t* stream() { return &handle_.stream; }
  ConnId id() const { return id_; }

  // Makes the connection use TLS. Call it before start(). With a non-empty `denial` the client gets only
  // this text, after the handshake. The text must live until the process ends.
  void begin_tls(std::shared_ptr<const TlsContext> context, std::string_view denial);

  // Begins to read. The caller has accepted the socket into stream(). From here on the loop owns the
  // connection.
  void start(ConnId id, TimeMs now);

  // Sends as many unsent replies as the socket accepts now; the loop sends the rest. Closes a client that
  // reads too slowly.
  void flush();

  // Delays the replies: hold() keeps all unsent replies, and adds them to `replies`. release() sends those
  // up to a position that it added.
  void hold(HeldReplies& replies, const Store::Promise& promise);
  bool held() const { return gate_.holds(); }
  void release(uint64_t end);

  // Continues to parse the buffered input.
  void resume();

  // Closes the connection on behalf of the server: as close(), but the last reply still arrives. Call
  // flush() first.
  void finish();

  // Closes the connection: the engine drops the client, the socket closes, unsent replies are lost.
  void close();
  // The same, and logs why.
  void refuse(std::string_view why);

  // Closes a socket that was accepted but never started, and is unknown to the engine.
  void abandon();

  // Time of the last input from the client.
  TimeMs last_active() const { return last_active_; }

  // Whether the TLS handshake is unfinished. give_up_handshake() logs its failure and closes the
  // connection.
  bool handshakes() const;
  void give_up_handshake(std::string_view why);

 private:
  static void on_alloc(uv_handle_t* handle, size_t, uv_buf_t* buf) noexcept;
  static void on_read(uv_stream_t* stream, ssize_t n, const uv_buf_t* buf) noexcept;
  static void on_written(uv_write_t* request, int status) noexcept;
  static void on_closed(uv_handle_t* handle) noexcept;

  void drain();
  uv_buf_t next_read();
  void take(const uv_buf_t& buf, size_t n);
  size_t parse(std::string_view bytes);
  bool cut_batch(RequestBatch& batch, std::string_view bytes);
  void parse_input();
  void tidy(Buffer& buffer);
  void check_input();
  void stop_reading();
  void read_again();
  void end_of_input();
  bool is_under_way() const;
  void close_if_finished();
  void send();
  std::optional<size_t> try_write(Buffer& bytes, size_t most);
  bool write_now();
  void take_allowed();
  void write_rest();
  bool is_reader_too_slow();
  void linger();

  // In connection_tls.cc:
  void decrypt(std::string_view bytes);
  bool end_handshake();
  void fail_tls(bool handshook);
  bool encrypt();
  bool write_tls();
  void send_tls();
  void send_close_notify();

  Server& server_;
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle_;
  ConnId id_;
  RequestParser parser_;
  Buffer input_;              // input not parsed yet; mostly empty, as requests arrive complete
  Buffer* output_ = nullptr;  // the engine's
  OutputGate gate_;
  PendingWrite pending_;
  Buffer last_words_;               // of a lingering connection: its replies after pending_
  std::unique_ptr<TlsStream> tls_;  // null: no TLS
  TimeMs last_active_;
  uint64_t replied_at_;         // the server's reads() at the last reply
  bool read_was_full_ = false;  // the last read filled its buffer, so libuv is about to read again
  bool backlogged_ = false;     // has complete requests, but other clients come first
  bool read_stopped_ = false;   // has enough input until its chunked request is complete
  bool stopped_ = false;        // has input after an unfinished request
  bool at_end_ = false;         // the peer ended its input, but may still read
  bool lingering_ = false;      // the engine has dropped the client, but its last replies are not sent yet
  bool closed_ = false;
};

}  // namespace holdfast
