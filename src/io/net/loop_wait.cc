// The system's side of BusyPoll.
#include "io/net/loop_wait.h"

#include <charconv>

#include "io/os/cores.h"
#include "io/os/handles.h"

namespace holdfast {
namespace {

constexpr uint64_t kUsNs = 1000;

// The table of options permits auto, no and numbers.
BusyPoll::Setting setting_of(const std::string& text) {
  if (text == "auto") return {.automatic = true};
  uint64_t us = 0;
  std::from_chars(text.data(), text.data() + text.size(), us);  // no: 0
  return {.fixed_ns = us * kUsNs};
}

}  // namespace

LoopWait::LoopWait(uv_loop_t* loop, const Options& options) : options_(options) {
  uv_idle_init(loop, &no_sleep_);
  no_sleep_.data = this;
}

void LoopWait::begin() {
  const uint64_t now_ns = uv_hrtime();
  if (text_ != options_.busy_poll) [[unlikely]] {  // CONFIG SET changes it
    text_ = options_.busy_poll;
    setting_ = setting_of(text_);
  }
  if (busy_poll_.needs_cores(now_ns, setting_)) busy_poll_.set_cores(now_ns, read_cores());
  if (busy_poll_.begin_wait(now_ns, setting_)) {
    uv_idle_start(&no_sleep_, on_busy_poll);
  } else {
    uv_idle_stop(&no_sleep_);
  }
}

// libuv calls it before each poll.
void LoopWait::on_busy_poll(uv_idle_t* handle) noexcept {
  const uint64_t others_ns = let_others_run();
  if (!owner_of<LoopWait>(handle->data)->busy_poll_.goes_on(uv_hrtime(), others_ns)) uv_idle_stop(handle);
}

BusyPollFacts LoopWait::facts() const {
  const BusyPoll::Counts& counts = busy_poll_.counts();
  return {options_.busy_poll, counts.spins, counts.hits, counts.preemptions, counts.spun_ns / kUsNs};
}

void LoopWait::close() { close_handle(no_sleep_); }

}  // namespace holdfast
