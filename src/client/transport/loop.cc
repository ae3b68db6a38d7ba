// The loop's thread and its timers.
#include "client/transport/loop.h"

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

namespace holdfast::client {
namespace {

// libuv's timers stop while the machine is suspended, but now() does not. So a timer sleeps at most 1 s.
constexpr int64_t kMaxSleepMs = 1000;

int64_t microseconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000 + t.tv_nsec / 1000;
}

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(-error, std::generic_category(), what);
}

// Blocks signals for its thread, and for the threads that this thread starts, until it is destroyed. So the
// program's handlers run in the program's threads. The blocked signals include SIGPIPE, which a write to a
// connection closed by the server raises, and which would end the program. Blocked, it stays pending in the
// loop's thread and ends with it. The signals of a crash are not blocked: a crash must stay a crash, with
// the program's handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&blocked, crash);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void Loop::Core::run() noexcept {
  thread_id = std::this_thread::get_id();
  uv_run(&uv, UV_RUN_DEFAULT);  // until `wake` is closed and every other handle and request has ended
  while (run_posted()) uv_run(&uv, UV_RUN_DEFAULT);  // the work that the last callbacks posted
}

bool Loop::Core::run_posted() {
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard lock(mutex);
    work.swap(posted);
  }
  for (const auto& job : work) job();
  return !work.empty();
}

int Loop::Core::open_wake() {
  wake.data = this;
  return uv_async_init(&uv, &wake,
                       [](uv_async_t* async) noexcept { static_cast<Core*>(async->data)->run_posted(); });
}

void Loop::Core::close_wake() {
  const std::lock_guard lock(mutex);
  awake = false;
  uv_close(reinterpret_cast<uv_handle_t*>(&wake), nullptr);
}

Loop::Loop() : core_(std::make_unique<Core>()) {
  check(uv_loop_init(&core_->uv), "cannot make an event loop");
  const int error = core_->open_wake();
  if (error != 0) uv_loop_close(&core_->uv);
  check(error, "cannot make an event loop");
  const SignalsBlocked blocked;
  try {
    core_->thread = std::thread(&Core::run, core_.get());
  } catch (const std::system_error&) {
    core_->close_wake();
    uv_run(&core_->uv, UV_RUN_DEFAULT);
    uv_loop_close(&core_->uv);
    throw;
  }
}

Loop::Loop(uv_loop_s& outside) : core_(std::make_unique<Core>(outside)) {
  check(core_->open_wake(), "cannot use the event loop");
}

void Loop::leave() {
  assert(on_thread() && &core_->uv != &core_->own);
  core_->close_wake();
}

Loop::~Loop() {
  if (&core_->uv != &core_->own) return;
  assert(!on_thread());
  post([core = core_.get()] { core->close_wake(); });
  core_->thread.join();
  const int error = uv_loop_close(&core_->uv);
  assert(error == 0 && "every handle has been closed");
  static_cast<void>(error);
}

void Loop::post(std::function<void()> work) {
  const std::lock_guard lock(core_->mutex);
  core_->posted.push_back(std::move(work));
  if (core_->awake) uv_async_send(&core_->wake);
}

bool Loop::on_thread() const { return core_->thread_id == std::this_thread::get_id(); }

TimeMs Loop::now() { return {now_us() / 1000}; }

int64_t Loop::now_us() { return microseconds(CLOCK_BOOTTIME); }

uint64_t Loop::clock_us() { return static_cast<uint64_t>(microseconds(CLOCK_REALTIME)); }

struct LoopTimer::Core {
  Loop& loop;
  std::function<void()> fire;
  uv_timer_t uv{};
  TimeUs at = kNeverUs;

  // Rounds up: a timer of 0 ms would fire in this iteration again and again.
  void sleep() {
    const int64_t left_ms = std::clamp(ms_of(at - Loop::time_us()).count, int64_t{0}, kMaxSleepMs);
    uv_timer_start(&uv, on_time, static_cast<uint64_t>(left_ms), 0);
  }

  static void on_time(uv_timer_t* timer) noexcept {
    auto* core = static_cast<Core*>(timer->data);
    if (!is_due(core->at, Loop::time_us())) return core->sleep();
    core->at = kNeverUs;
    core->fire();
  }
};

LoopTimer::LoopTimer(Loop& loop, std::function<void()> fire) : core_(new Core{loop, std::move(fire)}) {
  assert(loop.on_thread());
  uv_timer_init(&loop.core().uv, &core_->uv);
  core_->uv.data = core_;
}

LoopTimer::~LoopTimer() {
  assert(core_->loop.on_thread());
  uv_close(reinterpret_cast<uv_handle_t*>(&core_->uv),
           [](uv_handle_t* handle) noexcept { delete static_cast<Core*>(handle->data); });
}

// A time in ms is due at its beginning, as is_due() says.
void LoopTimer::set(TimeMs at) { set(us_of(at)); }

void LoopTimer::set(TimeUs at) {
  assert(core_->loop.on_thread());
  core_->at = at;
  if (at >= kNeverUs) {
    uv_timer_stop(&core_->uv);
  } else {
    core_->sleep();
  }
}

}  // namespace holdfast::client
