// Reports the state of the server to its service manager: starting, ready, reloading, stopping, and a sign
// of life from the loop. A loop that is stuck sends none, so the manager restarts the server. Without a
// service manager it starts no timer.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <string>

#include "io/os/service_notify.h"

namespace holdfast {

class ServiceReporter {
 public:
  ServiceReporter() = default;
  ServiceReporter(const ServiceReporter&) = delete;
  ServiceReporter& operator=(const ServiceReporter&) = delete;

  // Begins to report. `status` returns one line about the server's state; it is called about once a second.
  void start(uv_loop_t* loop, std::function<std::string()> status);
  // The server has loaded its data and serves clients.
  void ready();
  // Around the work of a SIGHUP.
  void reloading();
  void reloaded();
  void stopping(const std::string& why);
  // The loop works on a request that takes long, such as SAVE. Call it often: it is cheap.
  void working();
  // The last call.
  void close();

 private:
  static void on_second(uv_timer_t* timer) noexcept;
  static void on_watchdog(uv_timer_t* timer) noexcept;
  void report_status(const std::string& before);

  enum class Phase { kStarting, kReady, kStopping };
  ServiceNotify notify_;
  std::function<std::string()> status_;
  std::string sent_status_;
  Phase phase_ = Phase::kStarting;
  uint64_t worked_at_ns_ = 0;
  uv_timer_t second_timer_;
  uv_timer_t watchdog_timer_;
};

}  // namespace holdfast
