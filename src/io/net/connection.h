// One client: its socket, its unparsed input, its parser and what the socket has not yet taken of its
// replies. Reads once a wake-up, feeds requests to the engine, writes once a turn. Knows no command.
#pragma once

#include <uv.h>

#include <memory>
#include <optional>
#include <string_view>

#include "core/base/buffer.h"
#include "core/codec/resp.h"
#include "core/engine/engine.h"
#include "io/net/tls_stream.h"

namespace holdfast {

class Server;

// How much one client may do before the others have their turn.
inline constexpr size_t kReadBytes = size_t{64} << 10;  // read at once; also the size of the shared buffer
inline constexpr size_t kMaxReadBytes = size_t{1} << 20;    // the same, inside one large argument
inline constexpr size_t kTurnReplyBytes = size_t{1} << 20;  // replies made at once
// Memory that an idle connection may keep of a buffer that has grown.
inline constexpr size_t kKeptBytes = size_t{16} << 10;

// Lives from start() until the loop has run its close callback, which deletes it. After close() nobody but
// the loop may touch it.
class Connection {
 public:
  enum class Kind { kTcp, kUnix };

  Connection(Server& server, Kind kind);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uv_stream_t* stream() { return &handle_.stream; }
  ConnId id() const { return id_; }

  // Before start(): it speaks TLS. With a `denial` that is all it will hear, when it can; the text has to
  // live as long as the program.
  void begin_tls(std::shared_ptr<const TlsContext> context, std::string_view denial);

  // Begins to read. The socket has been accepted into stream(); from here on the loop owns the connection.
  void start(ConnId id, TimeMs now);

  // Sends the unsent replies as far as the socket takes them at once; the rest follows by itself. A reader
  // who is too slow is closed.
  void flush();

  // The replies are not to leave yet: hold() keeps all that is unsent. What is unsent at mark() leaves with
  // release(); true: nothing is held any more.
  bool hold();  // true: it was not held before
  bool held() const { return held_; }
  void mark() { marked_ = output_->size(); }
  bool release();

  // Parses on where buffered input was left.
  void resume();

  // Ends it by the server's will: as close(), but so that the last reply arrives. flush() comes first.
  void finish();

  // Ends it: the engine forgets it, the socket closes, what is unsent is lost.
  void close();

  // Closes a socket that was accepted but never started: the engine does not know it.
  void abandon();

  // When it last sent something.
  TimeMs last_active() const { return last_active_; }

  // Whether its TLS handshake is not over; and the end of one that will not be.
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
  void note_left(size_t bytes);
  void take_allowed();
  void write_rest();
  bool is_reader_too_slow();
  void refuse(std::string_view why);
  void linger();

  // In connection_tls.cc:
  void decrypt(std::string_view bytes);
  bool end_handshake();
  void fail_tls(bool handshook);
  bool encrypt();
  bool write_tls();
  void send_tls();
  void say_end();

  Server& server_;
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } handle_;
  ConnId id_;
  RequestParser parser_;
  Buffer input_;              // what could not be parsed yet; mostly empty, as requests arrive whole
  Buffer* output_ = nullptr;  // the engine's
  Buffer in_flight_;          // given to the loop to write; must not move until on_written()
  Buffer last_words_;         // of a connection that lingers: what comes behind in_flight_
  uv_write_t write_request_;
  std::unique_ptr<TlsStream> tls_;  // null: it speaks plainly
  TimeMs last_active_;
  size_t allowed_ = 0;  // bytes of output_ that may leave
  size_t marked_ = 0;   // those that may with the next release()
  bool held_ = false;
  bool read_was_full_ = false;  // the last read filled its buffer, so libuv is about to read again
  bool writing_ = false;        // in_flight_ is with the loop
  bool backlogged_ = false;     // has input that it could parse, but others come first
  bool read_stopped_ = false;   // has input enough until its request in chunks is done
  bool stopped_ = false;        // has input behind a request that is not done with
  bool at_end_ = false;         // the peer sends no more, yet may still read
  bool lingering_ = false;      // the engine has forgotten it, its last replies are still on their way
  bool closed_ = false;
};

}  // namespace holdfast
