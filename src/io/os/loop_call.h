// A function that the loop calls: in each of its iterations (IdleCall), or by time (TimerCall). The calls
// end with the object. libuv needs the memory of a handle until it has closed it, so the loop must run once
// more after the object is destroyed.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "io/os/handles.h"

namespace holdfast {

template <typename Handle>
class LoopCall {
 public:
  LoopCall(const LoopCall&) = delete;
  LoopCall& operator=(const LoopCall&) = delete;

 protected:
  // The caller initializes handle().
  explicit LoopCall(std::function<void()> call) : state_(new State{{}, std::move(call)}) {
    state_->handle.data = state_;
  }
  ~LoopCall() {
    uv_close(reinterpret_cast<uv_handle_t*>(&state_->handle),
             [](uv_handle_t* handle) { delete owner_of<State>(handle->data); });
  }
  Handle& handle() { return state_->handle; }
  // An exception ends the process, as it may not pass through libuv.
  static void run(Handle* handle) noexcept { owner_of<State>(handle->data)->call(); }

 private:
  // The function lives until libuv has closed the handle, so a call may destroy the object.
  struct State {
    Handle handle;
    std::function<void()> call;
  };
  State* state_;
};

class IdleCall : public LoopCall<uv_idle_t> {
 public:
  IdleCall(uv_loop_t* loop, std::function<void()> call) : LoopCall(std::move(call)) {
    uv_idle_init(loop, &handle());
  }
  void start() { uv_idle_start(&handle(), run); }
  void stop() { uv_idle_stop(&handle()); }
};

class TimerCall : public LoopCall<uv_timer_t> {
 public:
  TimerCall(uv_loop_t* loop, std::function<void()> call) : LoopCall(std::move(call)) {
    uv_timer_init(loop, &handle());
  }
  // The first call after `first_ms`, then one every `every_ms`; 0: no other. Replaces an earlier start().
  void start(uint64_t first_ms, uint64_t every_ms) { uv_timer_start(&handle(), run, first_ms, every_ms); }
  void stop() { uv_timer_stop(&handle()); }
};

}  // namespace holdfast
