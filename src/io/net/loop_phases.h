// The phases of the loop, which tell the server when an iteration has ended, and when the engine has work
// that is due. An iteration ends right after the poll (uv_check); one that handles only timers ends before
// the poll (uv_prepare). Measures the iterations.
#pragma once

#include <uv.h>

#include <cstdint>
#include <optional>

#include "core/base/types.h"
#include "io/net/loop_meter.h"
#include "io/net/loop_wait.h"

namespace holdfast {

class Server;

class LoopPhases {
 public:
  LoopPhases(Server& server, uv_loop_t* loop);
  LoopPhases(const LoopPhases&) = delete;
  LoopPhases& operator=(const LoopPhases&) = delete;

  void start();
  // The engine's work begins at this time, or when a client sends something. At once: with TimeMs{0}.
  void wake_at(std::optional<TimeMs> deadline);
  LoopWait& wait() { return wait_; }
  const LoopWait& wait() const { return wait_; }
  LoopMeter& meter() { return meter_; }
  void close();

 private:
  static void on_prepare(uv_prepare_t* handle) noexcept;
  static void on_check(uv_check_t* handle) noexcept;
  static void on_timer(uv_timer_t* timer) noexcept;

  Server& server_;
  uv_prepare_t prepare_;
  uv_check_t check_;
  uv_timer_t timer_;  // the engine's next deadline
  LoopWait wait_;
  LoopMeter meter_;
};

}  // namespace holdfast
