// The world's side of the simulated libuv: sockets, signals, and the end of the process. The functions of
// uv.h that src/io uses are in uv.cc and uv_streams.cc. There is one loop at a time.
#pragma once

#include <uv.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::simulation {

// One connection, as the network sees it. The client's side changes it between the runs of the scheduler.
struct Socket {
  std::string to_server;
  std::string to_client;
  bool client_ended = false;  // the client sends no more
  bool reset = false;
  bool server_closed = false;
  size_t room = SIZE_MAX;    // bytes of `to_client` that the network takes before the client reads
  uint64_t serial = 0;       // number in the order in which the server has accepted them; 0: not yet
  uint64_t taken_bytes = 0;  // that the server has written, since the start
  uint64_t sent_bytes = 0;   // of these, those that reached the client
};

// What the world wants to know of a process; called on the loop's stack.
struct LoopEvents {
  std::function<void()> before_poll;  // all callbacks of an iteration have run
  std::function<void()> before_send;  // a reply is about to leave
  std::function<void(Socket&)> sent;  // bytes have left
};

class Loop {
 public:
  static Loop& get();

  // A new process: no handles, no sockets.
  void begin_process(LoopEvents events);
  // Kills the process: from now on nothing that it does has an effect, and the loop makes it end.
  void die();
  bool dead() const { return dead_; }

  void connect(std::shared_ptr<Socket> socket);
  void raise_signal(int number);
  // The client's side of a socket has changed.
  void poke() { wake(); }

  // For the functions of uv.h:
  struct Stream {
    uv_stream_t* handle = nullptr;
    std::shared_ptr<Socket> socket;    // null: a listener
    std::shared_ptr<Socket> accepted;  // of a listener, until uv_accept()
    uv_connection_cb on_connection = nullptr;
    uv_alloc_cb alloc = nullptr;
    uv_read_cb read = nullptr;  // null: does not read
    uv_write_t* write = nullptr;
    uv_write_cb written = nullptr;
    std::string unsent;
    bool closed = false;
  };
  struct Job {
    uv_work_t* request;
    uv_after_work_cb after;
  };
  int run(uv_loop_t* loop);
  void wake();
  Stream& stream(const void* handle);
  size_t write(Stream& stream, const uv_buf_t& buf);
  void finish_job(Job job);
  void forget(uv_handle_t* handle);
  void note_send() {
    if (!dead_) events_.before_send();
  }
  void note_sent(Socket& socket) {
    if (!dead_) events_.sent(socket);
  }

  std::vector<uv_timer_t*> timers;
  std::vector<uv_idle_t*> idles;
  std::vector<uv_prepare_t*> prepares;
  std::vector<uv_check_t*> checks;
  std::vector<uv_signal_t*> signals;
  std::vector<uv_async_t*> asyncs;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<uv_handle_t*> closing;
  uint64_t last_timer = 0;
  uint64_t last_serial = 0;  // of the accepted sockets
  size_t jobs = 0;

 private:
  bool alive() const;
  void run_timers(uv_loop_t* loop);
  void poll(uv_loop_t* loop);
  bool has_events() const;
  void handle_events();
  void accept(Stream& stream);
  void read(Stream& stream);
  void finish_write(Stream& stream);
  void close_handles();
  int64_t next_timer_us() const;

  LoopEvents events_;
  bool dead_ = false;
  bool told_to_end_ = false;
  uint64_t task_ = 0;  // that runs the loop
  bool polling_ = false;
  std::deque<std::shared_ptr<Socket>> pending_;
  std::deque<int> raised_;
  std::deque<Job> finished_;
};

}  // namespace holdfast::simulation
