// The loop: accepts connections, begins and ends loop iterations, wakes the engine when it has work to do,
// and stops on a signal. Single-threaded. Reads the clock once in an iteration. A "turn" in the names below
// is a loop iteration.
#pragma once

#include <uv.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/codec/request_batch.h"
#include "core/engine/engine.h"
#include "io/config/options.h"
#include "io/disk/store.h"
#include "io/net/busy_poll.h"
#include "io/net/connection.h"
#include "io/net/held_replies.h"
#include "io/net/listen.h"
#include "io/net/loop_meter.h"
#include "io/net/memory_upkeep.h"
#include "io/net/service_reporter.h"

namespace holdfast {

class Door;

class Server {
 public:
  // Takes ownership of the listening sockets. The engine must outlive the server, and so must the store
  // (null: no data folder) and `tls`: each new connection uses the context that it points to at that time.
  Server(Engine& engine, const Options& options, std::vector<ListenSocket> sockets, Store* store,
         const std::shared_ptr<const TlsContext>& tls);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until SIGTERM, SIGINT or ask_to_stop(). Returns a failure of the start, or of the data folder at
  // the stop.
  Result<Done> run();
  // Adds a second way to the engine. Call it before run(); the door must outlive the server.
  void add_door(Door& door) { door_ = &door; }
  // Stops at the next loop iteration.
  void ask_to_stop();
  LoopMeter& meter() { return meter_; }

  // For connections, inside a callback of the loop:

  uv_loop_t* loop() { return &loop_; }
  Engine& engine() { return engine_; }
  Effects& effects() { return effects_; }
  const Options& options() const { return options_; }
  Store* store() const { return store_; }
  // Returns the time of this iteration. The first call of an iteration reads the clock and runs the
  // engine's due work.
  const Now& now();
  // Returns scratch space that the caller may use until its callback returns.
  uv_buf_t read_buffer();
  // The same for decrypted bytes. The caller leaves it empty.
  Buffer& plaintext() { return plaintext_; }
  // Scratch space for the requests that a connection is about to run.
  RequestBatch& batch() { return batch_; }
  // Removes a closed connection, and drops its client in the engine.
  void forget(ConnId id);
  // The same, but its socket continues to send the last replies, and counts as a client until end_linger().
  void linger(Connection& connection);
  void end_linger(Connection& connection);
  // Frees the memory of a large buffer that is no longer needed. The engine empties the buffer before now()
  // begins an iteration, so bytes that the iteration adds to the buffer stay.
  void free_later(Buffer& buffer) {
    engine_.free_later(buffer);
    now();
  }
  // Adds a client with complete requests that has used its share of this iteration.
  void add_backlog(ConnId id) { backlog_.push_back(id); }
  // Returns one client's share of the time of an iteration. Clients over their share split one time slice.
  uint64_t share_ns() const;
  // The number of reads from clients since the start.
  uint64_t reads() const { return reads_; }
  // A client sent something. `replied_at`: reads() at the last reply to it.
  void note_read(uint64_t replied_at) { busy_poll_.note_read(reads_++ - replied_at); }
  // Ends an iteration early that has done much work, so that no client waits long for its reply. This may
  // close any connection.
  void did_read(size_t bytes);
  // Adds work that cost as much time as requests of so many bytes. Call it before did_read().
  void did_work(size_t bytes) { turn_bytes_ += bytes; }
  void did_write(size_t bytes) { written_bytes_ += bytes; }

  BusyPollFacts busy_poll_facts() const;

 private:
  struct Listener {
    Server* server;
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
  static void on_timer(uv_timer_t* timer) noexcept;
  static void on_busy_poll(uv_idle_t* handle) noexcept;
  static void on_idle_check(uv_timer_t* timer) noexcept;
  static void on_stop_signal(uv_signal_t* handle, int number) noexcept;
  static void on_hangup_signal(uv_signal_t* handle, int number) noexcept;

  Result<Done> listen(Listener& listener);
  void accept(Listener& listener);
  void admit(std::unique_ptr<Connection> connection, Listener& listener);
  bool is_denied(const Listener& listener, int fd) const;
  void refuse(std::unique_ptr<Connection> connection, std::string_view why);
  void warn_of_accept(std::string_view why);
  Connection* find(ConnId id) const;

  void end_open_turn();
  void end_turn();
  void handle_effects();
  Store::Hooks store_hooks();
  void begin_to_serve();
  std::string service_status() const;
  void release_held();
  void flush_held();
  void finish_if_closing(ConnId id);
  void run_backlog();
  void accept_waiting();
  void arm_timer();
  void begin_wait();
  void close_idle();
  void close_excess();
  void close_slow_handshakes();
  void log_memory_limit(uint64_t used);
  void stop(const char* signal_name);

  Engine& engine_;
  const Options& options_;
  Store* store_;
  Door* door_ = nullptr;
  const std::shared_ptr<const TlsContext>& tls_;
  std::string failure_;     // of the start, or of the data folder at the stop
  std::string ready_text_;  // log line for the moment when the server begins to serve
  uv_loop_t loop_;
  uv_prepare_t prepare_;
  uv_check_t check_;
  uv_timer_t timer_;       // the engine's next deadline
  uv_timer_t idle_timer_;  // looks for idle clients
  uv_idle_t no_sleep_;     // while it is active the loop does not sleep
  uv_signal_t terminate_;
  uv_signal_t interrupt_;
  uv_signal_t hangup_;
  uv_async_t stop_request_;
  MemoryUpkeep memory_upkeep_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<Connection*> connections_;  // by slot; the loop owns them
  std::vector<Connection*> lingering_;    // the engine has dropped their clients, the sockets still send
  size_t clients_ = 0;
  size_t accepted_ = 0;     // in this iteration
  bool some_wait_ = false;  // a listener has a client to accept
  std::unique_ptr<char[]> read_buffer_;
  Buffer plaintext_;
  RequestBatch batch_;
  // Connections that began with a TLS handshake, with the time of the start, in ascending order.
  std::deque<std::pair<ConnId, TimeMs>> handshakes_;

  BusyPoll busy_poll_;
  BusyPoll::Setting poll_setting_;
  std::string poll_text_;  // from which poll_setting_ was read
  bool polled_ = false;    // since the last iteration
  uint64_t reads_ = 0;
  uint64_t turn_began_ns_ = 0;  // by uv_hrtime()
  bool turn_open_ = false;
  bool memory_full_ = false;          // as logged
  uint64_t rejected_for_memory_ = 0;  // -OOM replies, as of the last check
  Now now_;
  Effects effects_;  // effects to be handled
  Effects handled_;  // effects being handled; a member to reuse its memory
  LoopMeter meter_;
  HeldReplies held_;
  ServiceReporter service_;
  std::vector<ConnId> backlog_;
  std::vector<ConnId> runnable_;  // the part of the backlog that runs now
  size_t turn_bytes_ = 0;         // read since the iteration began
  uint64_t read_bytes_ = 0;       // not yet reported to the engine
  uint64_t written_bytes_ = 0;
  TimeMs accept_warned_{-1000000};
  bool stopping_ = false;
};

}  // namespace holdfast
