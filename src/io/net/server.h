// The loop: accepts connections, opens and ends turns, wakes the engine when it has something to do, and
// stops on a signal. One thread. Reads the clock once a turn.
#pragma once

#include <uv.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "io/config/options.h"
#include "io/disk/store.h"
#include "io/net/connection.h"
#include "io/net/listen.h"

namespace holdfast {

class Server {
 public:
  // Takes over the listening sockets. The engine must outlive it, and so must the store (null: there is no
  // data folder) and `tls`: what it points to at the time is for connections that begin then.
  Server(Engine& engine, const Options& options, std::vector<ListenSocket> sockets, Store* store,
         const std::shared_ptr<const TlsContext>& tls);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until SIGTERM, SIGINT or ask_to_stop(). A failure is one of the start.
  Result<Done> run();
  // Stops when the turn is over.
  void ask_to_stop();

  // For connections, inside a callback of the loop:

  uv_loop_t* loop() { return &loop_; }
  Engine& engine() { return engine_; }
  Effects& effects() { return effects_; }
  // This turn's time. The first call of a turn reads the clock and does what is due.
  const Now& now();
  // Scratch space that is anybody's until the callback returns.
  uv_buf_t read_buffer();
  // The same, for what has been decrypted; it is left empty.
  Buffer& plaintext() { return plaintext_; }
  // The connection has gone: nothing is to find it any more.
  void forget(ConnId id);
  // The same, but its socket goes on to send the last replies, and counts as a client until end_linger().
  void linger(Connection& connection);
  void end_linger(Connection& connection);
  // Takes the memory of a large buffer that is not needed any more. It is emptied first, as this may open
  // a turn, and what that says in it is to stay.
  void give_back(Buffer& buffer) {
    engine_.give_back(buffer);
    now();
  }
  // It has input that it could parse, but has had its share of this turn.
  void add_backlog(ConnId id) { backlog_.push_back(id); }
  // Of a turn's time, for the requests of one client: those who want more than their share share what one
  // has.
  uint64_t share_ns() const;
  // A turn that has done much ends early, so that nobody waits long for his reply; with it any connection
  // may end.
  void did_read(size_t bytes);
  // Before did_read(): work that took as long as requests of so many bytes do.
  void did_work(size_t bytes) { turn_bytes_ += bytes; }
  void did_write(size_t bytes) { written_bytes_ += bytes; }

 private:
  struct Listener {
    Server* server;
    ListenSocket socket;
    bool waiting = false;  // somebody who is accepted in the next turn
    union {
      uv_handle_t handle;
      uv_stream_t stream;
      uv_tcp_t tcp;
      uv_pipe_t pipe;
    } uv;
  };

  static void on_connection(uv_stream_t* stream, int status) noexcept;
  static void on_timer(uv_timer_t* timer) noexcept;
  static void on_busy_poll(uv_idle_t* handle) noexcept;
  static void on_idle_check(uv_timer_t* timer) noexcept;
  static void on_stop_signal(uv_signal_t* handle, int number) noexcept;
  static void on_hangup_signal(uv_signal_t* handle, int number) noexcept;

  Result<Done> listen(Listener& listener);
  void accept(Listener& listener);
  void admit(std::unique_ptr<Connection> connection, Listener& listener);
  bool is_kept_out(const Listener& listener, int fd) const;
  void refuse(std::unique_ptr<Connection> connection, std::string_view why);
  void warn_of_accept(int status);
  Connection* find(ConnId id) const;

  void end_open_turn();
  void end_turn();
  void make_spare_pages();
  void handle_effects();
  Store::Hooks store_hooks();
  void begin_to_serve();
  void hold(Connection& connection);
  void release_held();
  void flush_held();
  void run_backlog();
  void accept_waiting();
  void arm_timer();
  void close_idle();
  void close_slow_handshakes();
  void stop(const char* signal_name);

  Engine& engine_;
  const Options& options_;
  Store* store_;
  const std::shared_ptr<const TlsContext>& tls_;
  std::string failure_;     // of the start
  std::string ready_text_;  // what the log says when requests are served
  uv_loop_t loop_;
  uv_prepare_t prepare_;
  uv_check_t check_;
  uv_timer_t timer_;       // the engine's next deadline
  uv_timer_t idle_timer_;  // looks for idle clients
  uv_idle_t busy_poll_;    // while it is active the loop does not sleep
  uv_signal_t terminate_;
  uv_signal_t interrupt_;
  uv_signal_t hangup_;
  uv_async_t stop_request_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Connection*> connections_;  // by slot; the loop owns them
  std::vector<Connection*> lingering_;    // their sockets live on, the engine has forgotten them
  size_t clients_ = 0;
  size_t accepted_ = 0;     // in this turn
  bool some_wait_ = false;  // at a listener
  std::unique_ptr<char[]> read_buffer_;
  Buffer plaintext_;
  // Those that have begun with a TLS handshake, and when, in that order.
  std::deque<std::pair<ConnId, TimeMs>> handshakes_;

  uint64_t sleep_from_ns_ = 0;  // the loop's clock: until then it does not
  bool turn_open_ = false;
  bool making_pages_ = false;  // a job does
  Now now_;
  Effects effects_;                  // what has still to be done
  Effects handled_;                  // what is being done: kept for its memory
  std::vector<ConnId> held_;         // their replies wait for the disk
  std::vector<ConnId> held_closes_;  // they close when those have left
  std::vector<ConnId> backlog_;
  std::vector<ConnId> runnable_;  // the backlog that is being run
  size_t turn_bytes_ = 0;         // read since the turn began
  uint64_t read_bytes_ = 0;       // not yet told to the engine
  uint64_t written_bytes_ = 0;
  TimeMs accept_warned_{-1000000};
  bool stopping_ = false;
};

}  // namespace holdfast
