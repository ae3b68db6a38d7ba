// The loop between two iterations: it sleeps, or polls without a sleep (BusyPoll).
#include <charconv>

#include "io/net/server.h"
#include "io/os/cores.h"

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

void Server::begin_wait() {
  const uint64_t now_ns = uv_hrtime();
  if (poll_text_ != options_.busy_poll) [[unlikely]] {  // CONFIG SET changes it
    poll_text_ = options_.busy_poll;
    poll_setting_ = setting_of(poll_text_);
  }
  if (busy_poll_.needs_cores(now_ns, poll_setting_)) busy_poll_.set_cores(now_ns, read_cores());
  if (busy_poll_.begin_wait(now_ns, poll_setting_)) {
    uv_idle_start(&no_sleep_, on_busy_poll);
  } else {
    uv_idle_stop(&no_sleep_);
  }
}

// libuv calls it before each poll.
void Server::on_busy_poll(uv_idle_t* handle) noexcept {
  auto* server = static_cast<Server*>(handle->data);
  const uint64_t others_ns = let_others_run();
  if (!server->busy_poll_.goes_on(uv_hrtime(), others_ns)) uv_idle_stop(handle);
}

BusyPollFacts Server::busy_poll_facts() const {
  const BusyPoll::Counts& counts = busy_poll_.counts();
  return {options_.busy_poll, counts.spins, counts.hits, counts.preemptions, counts.spun_ns / kUsNs};
}

}  // namespace holdfast
