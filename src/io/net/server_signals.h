// The signals of the server, and the request of another thread or of a client to stop. After a stop the
// handlers end: a second signal has its default effect, and ends the process.
#pragma once

#include <uv.h>

#include <functional>

namespace holdfast {

class ServerSignals {
 public:
  struct Hooks {
    std::function<void(const char* name)> stop;
    std::function<void()> hangup;
  };

  ServerSignals(uv_loop_t* loop, Hooks hooks);
  ServerSignals(const ServerSignals&) = delete;
  ServerSignals& operator=(const ServerSignals&) = delete;

  void start();
  // Stops at the next loop iteration.
  void ask_to_stop() { uv_async_send(&stop_request_); }
  void close();

 private:
  static void on_stop(uv_signal_t* handle, int number) noexcept;
  static void on_hangup(uv_signal_t* handle, int number) noexcept;
  static void on_stop_request(uv_async_t* handle) noexcept;

  Hooks hooks_;
  uv_signal_t terminate_;
  uv_signal_t interrupt_;
  uv_signal_t hangup_;
  uv_async_t stop_request_;
};

}  // namespace holdfast
