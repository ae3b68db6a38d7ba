// libuv on simulated time: the loop, timers, jobs, signals. The order of an iteration is that of libuv
// 1.44: timers, idle, prepare, poll, check, closing handles.
#include <uv.h>

#include <algorithm>
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "disk.h"
#include "durations.h"
#include "loop.h"
#include "scheduler.h"

namespace holdfast::simulation {
namespace {

constexpr unsigned kActive = 1;
constexpr unsigned kClosing = 2;

template <class Handle>
void init(uv_loop_t* loop, Handle* handle, uv_handle_type type) {
  handle->loop = loop;
  handle->type = type;
  handle->flags = 0;
}

template <class Handle>
bool is_active(const Handle* handle) {
  return (handle->flags & kActive) != 0;
}

// Adds the handle to its list. Returns false if it was there already.
template <class Handle>
bool activate(std::vector<Handle*>& list, Handle* handle) {
  if (is_active(handle)) return false;
  handle->flags |= kActive;
  list.push_back(handle);
  return true;
}

template <class Handle>
void deactivate(std::vector<Handle*>& list, Handle* handle) {
  handle->flags &= ~kActive;
  std::erase(list, handle);
}

template <class Handle>
void run_all(const std::vector<Handle*>& list, void (*Handle::*callback)(Handle*)) {
  const std::vector<Handle*> now = list;
  for (Handle* handle : now) {
    if (is_active(handle)) (handle->*callback)(handle);
  }
}

void update_time(uv_loop_t* loop) { loop->time = static_cast<uint64_t>(Scheduler::get().now_us() / kMsUs); }

}  // namespace

Loop& Loop::get() {
  static Loop loop;
  return loop;
}

void Loop::begin_process(LoopEvents events) {
  *this = Loop();
  events_ = std::move(events);
}

void Loop::die() {
  dead_ = true;
  pending_.clear();
  raised_.clear();
}

void Loop::connect(std::shared_ptr<Socket> socket) {
  pending_.push_back(std::move(socket));
  wake();
}

void Loop::raise_signal(int number) {
  raised_.push_back(number);
  wake();
}

void Loop::wake() {
  if (polling_) Scheduler::get().wake(task_);
}

void Loop::finish_job(Job job) {
  finished_.push_back(job);
  wake();
}

bool Loop::alive() const {
  return !timers.empty() || !idles.empty() || !prepares.empty() || !checks.empty() || !signals.empty() ||
         !asyncs.empty() || !streams.empty() || !closing.empty() || jobs > 0;
}

int Loop::run(uv_loop_t* loop) {
  task_ = Scheduler::get().running();
  update_time(loop);
  while (alive()) {
    update_time(loop);
    run_timers(loop);
    run_all(idles, &uv_idle_t::idle_cb);
    run_all(prepares, &uv_prepare_t::prepare_cb);
    poll(loop);
    run_all(checks, &uv_check_t::check_cb);
    close_handles();
  }
  return 0;
}

void Loop::run_timers(uv_loop_t* loop) {
  while (!timers.empty()) {
    const auto before = [](const uv_timer_t* a, const uv_timer_t* b) {
      return std::pair(a->timeout, a->start_id) < std::pair(b->timeout, b->start_id);
    };
    uv_timer_t* timer = *std::min_element(timers.begin(), timers.end(), before);
    if (timer->timeout > loop->time) return;
    uv_timer_stop(timer);
    if (timer->repeat > 0) uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
    timer->timer_cb(timer);
  }
}

int64_t Loop::next_timer_us() const {
  int64_t next_us = std::numeric_limits<int64_t>::max();
  for (const uv_timer_t* timer : timers) {
    next_us = std::min(next_us, static_cast<int64_t>(timer->timeout) * kMsUs);
  }
  return next_us;
}

// Sleeps only if nothing is to be done, as the real loop.
void Loop::poll(uv_loop_t* loop) {
  if (!dead_) events_.before_poll();
  const bool sleeps = idles.empty() && closing.empty() && alive();
  polling_ = true;
  if (dead_) {
    if (!std::exchange(told_to_end_, true)) {
      raised_.push_back(SIGTERM);
    } else if (jobs > 0 && finished_.empty()) {
      Scheduler::get().pause_until(0);
    }
  } else if (sleeps && !has_events()) {
    Scheduler::get().pause_until(next_timer_us());
  } else {
    constexpr int64_t kBusyUs = 5;  // a loop that does not sleep takes time, too
    Scheduler::get().pause_until(Scheduler::get().now_us() + kBusyUs);
  }
  polling_ = false;
  update_time(loop);
  handle_events();
}

bool Loop::has_events() const {
  if (!finished_.empty() || !raised_.empty()) return true;
  for (const uv_async_t* async : asyncs) {
    if (async->pending != 0) return true;
  }
  for (const auto& stream : streams) {
    if (stream->closed) continue;
    if (stream->socket == nullptr) {
      if (!pending_.empty() && stream->accepted == nullptr) return true;
      continue;
    }
    const Socket& socket = *stream->socket;
    if (stream->read != nullptr && (!socket.to_server.empty() || socket.client_ended || socket.reset))
      return true;
    if (stream->write != nullptr && (socket.room > 0 || socket.reset)) return true;
  }
  return false;
}

void Loop::handle_events() {
  for (std::deque<Job> done = std::exchange(finished_, {}); !done.empty(); done.pop_front()) {
    --jobs;
    done.front().after(done.front().request, 0);
  }
  for (std::deque<int> raised = std::exchange(raised_, {}); !raised.empty(); raised.pop_front()) {
    const std::vector<uv_signal_t*> now = signals;
    for (uv_signal_t* handle : now) {
      if (is_active(handle) && handle->signum == raised.front()) handle->signal_cb(handle, handle->signum);
    }
  }
  const std::vector<uv_async_t*> now = asyncs;
  for (uv_async_t* async : now) {
    if (is_active(async) && std::exchange(async->pending, 0) != 0) async->async_cb(async);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    Stream& stream = *streams[i];
    if (stream.closed || dead_) continue;
    stream.socket == nullptr ? accept(stream) : read(stream);
    if (!stream.closed && stream.write != nullptr) finish_write(stream);
  }
}

void Loop::accept(Stream& stream) {
  while (!pending_.empty() && stream.accepted == nullptr && !stream.closed) {
    stream.accepted = std::move(pending_.front());
    pending_.pop_front();
    stream.on_connection(stream.handle, 0);
  }
}

void Loop::close_handles() {
  for (uv_handle_t* handle : std::exchange(closing, {})) {
    std::erase_if(streams, [handle](const auto& s) { return static_cast<void*>(s->handle) == handle; });
    if (handle->close_cb != nullptr) handle->close_cb(handle);
  }
}

void Loop::forget(uv_handle_t* handle) {
  handle->flags &= ~kActive;
  const auto drop = [handle](auto& list) {
    std::erase_if(list, [handle](const auto* h) { return static_cast<const void*>(h) == handle; });
  };
  drop(timers);
  drop(idles);
  drop(prepares);
  drop(checks);
  drop(signals);
  drop(asyncs);
}

}  // namespace holdfast::simulation

using holdfast::simulation::Loop;
using holdfast::simulation::Scheduler;
namespace sim = holdfast::simulation;

extern "C" {

int uv_loop_init(uv_loop_t* loop) {
  sim::update_time(loop);
  return 0;
}

int uv_loop_close(uv_loop_t*) {
  return Loop::get().streams.empty() && Loop::get().closing.empty() ? 0 : UV_EBUSY;
}

int uv_run(uv_loop_t* loop, uv_run_mode) { return Loop::get().run(loop); }

uint64_t uv_hrtime(void) {
  constexpr uint64_t kUsNs = 1000;
  return static_cast<uint64_t>(Scheduler::get().now_us()) * kUsNs;
}

const char* uv_strerror(int error) { return error == UV_EPIPE ? "broken pipe" : "simulated error"; }

uv_buf_t uv_buf_init(char* base, unsigned length) {
  uv_buf_t buf;
  buf.base = base;
  buf.len = length;
  return buf;
}

int uv_timer_init(uv_loop_t* loop, uv_timer_t* timer) {
  sim::init(loop, timer, UV_TIMER);
  timer->timeout = timer->repeat = 0;
  return 0;
}

int uv_timer_start(uv_timer_t* timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat) {
  uv_timer_stop(timer);
  timer->timer_cb = callback;
  timer->timeout = timer->loop->time + timeout;
  timer->repeat = repeat;
  timer->start_id = ++Loop::get().last_timer;
  sim::activate(Loop::get().timers, timer);
  return 0;
}

int uv_timer_stop(uv_timer_t* timer) {
  sim::deactivate(Loop::get().timers, timer);
  return 0;
}

int uv_idle_init(uv_loop_t* loop, uv_idle_t* idle) {
  sim::init(loop, idle, UV_IDLE);
  return 0;
}

int uv_idle_start(uv_idle_t* idle, uv_idle_cb callback) {
  if (sim::activate(Loop::get().idles, idle)) idle->idle_cb = callback;
  return 0;
}

int uv_idle_stop(uv_idle_t* idle) {
  sim::deactivate(Loop::get().idles, idle);
  return 0;
}

int uv_prepare_init(uv_loop_t* loop, uv_prepare_t* prepare) {
  sim::init(loop, prepare, UV_PREPARE);
  return 0;
}

int uv_prepare_start(uv_prepare_t* prepare, uv_prepare_cb callback) {
  if (sim::activate(Loop::get().prepares, prepare)) prepare->prepare_cb = callback;
  return 0;
}

int uv_check_init(uv_loop_t* loop, uv_check_t* check) {
  sim::init(loop, check, UV_CHECK);
  return 0;
}

int uv_check_start(uv_check_t* check, uv_check_cb callback) {
  if (sim::activate(Loop::get().checks, check)) check->check_cb = callback;
  return 0;
}

int uv_signal_init(uv_loop_t* loop, uv_signal_t* handle) {
  sim::init(loop, handle, UV_SIGNAL);
  return 0;
}

int uv_signal_start(uv_signal_t* handle, uv_signal_cb callback, int number) {
  handle->signal_cb = callback;
  handle->signum = number;
  sim::activate(Loop::get().signals, handle);
  return 0;
}

int uv_async_init(uv_loop_t* loop, uv_async_t* async, uv_async_cb callback) {
  sim::init(loop, async, UV_ASYNC);
  async->async_cb = callback;
  async->pending = 0;
  sim::activate(Loop::get().asyncs, async);
  return 0;
}

int uv_async_send(uv_async_t* async) {
  async->pending = 1;
  Loop::get().wake();
  return 0;
}

int uv_queue_work(uv_loop_t*, uv_work_t* request, uv_work_cb work, uv_after_work_cb after) {
  ++Loop::get().jobs;
  Scheduler& scheduler = Scheduler::get();
  scheduler.start(
      [request, work, after] {
        work(request);
        Loop::get().finish_job({request, after});
      },
      scheduler.now_us() + sim::Disk::get().delay_us());
  return 0;
}

int uv_is_closing(const uv_handle_t* handle) { return (handle->flags & sim::kClosing) != 0 ? 1 : 0; }

void uv_close(uv_handle_t* handle, uv_close_cb callback) {
  Loop& loop = Loop::get();
  loop.forget(handle);
  handle->flags |= sim::kClosing;
  handle->close_cb = callback;
  loop.closing.push_back(handle);
  const auto stream = std::find_if(loop.streams.begin(), loop.streams.end(),
                                   [&](const auto& s) { return static_cast<void*>(s->handle) == handle; });
  if (stream == loop.streams.end()) return;
  (*stream)->closed = true;
  if ((*stream)->socket != nullptr) (*stream)->socket->server_closed = true;
}
}
