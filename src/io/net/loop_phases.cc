// The handles of the loop that have no socket.
#include "io/net/loop_phases.h"

#include <algorithm>

#include "io/net/server.h"
#include "io/os/clock.h"
#include "io/os/handles.h"

namespace holdfast {
namespace {

// The loop's timers stop while the machine is suspended, but the engine's clock runs on: so the server
// wakes early to read the clock.
constexpr int64_t kMaxSleepMs = 1000;

}  // namespace

LoopPhases::LoopPhases(Server& server, uv_loop_t* loop) : server_(server), wait_(loop, server.options()) {
  uv_prepare_init(loop, &prepare_);
  uv_check_init(loop, &check_);
  uv_timer_init(loop, &timer_);
  prepare_.data = check_.data = timer_.data = this;
}

void LoopPhases::start() {
  uv_prepare_start(&prepare_, on_prepare);
  uv_check_start(&check_, on_check);
}

void LoopPhases::on_prepare(uv_prepare_t* handle) noexcept {
  LoopPhases* phases = owner_of<LoopPhases>(handle->data);
  phases->server_.end_open_iteration();
  phases->meter_.count();
  phases->wait_.note_poll();
}

void LoopPhases::on_check(uv_check_t* handle) noexcept {
  owner_of<LoopPhases>(handle->data)->server_.end_open_iteration();
}

void LoopPhases::on_timer(uv_timer_t* timer) noexcept {
  owner_of<LoopPhases>(timer->data)->server_.run_due_work();
}

// Measures the deadline from the present clock, not from the iteration's time, because the iteration's work
// took time.
void LoopPhases::wake_at(std::optional<TimeMs> deadline) {
  if (!deadline) {
    uv_timer_stop(&timer_);
    return;
  }
  int64_t sleep_ms = 0;
  if (deadline->count > 0)
    sleep_ms = std::clamp(deadline->count - read_clock().mono.count, int64_t{0}, kMaxSleepMs);
  uv_timer_start(&timer_, on_timer, static_cast<uint64_t>(sleep_ms), 0);
}

void LoopPhases::close() {
  close_handle(prepare_);
  close_handle(check_);
  close_handle(timer_);
  wait_.close();
}

}  // namespace holdfast
