// The loop between two iterations: it sleeps, or polls without a sleep (BusyPoll).
#pragma once

#include <uv.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/config.h"
#include "io/config/options.h"
#include "io/net/busy_poll.h"

namespace holdfast {

class LoopWait {
 public:
  LoopWait(uv_loop_t* loop, const Options& options);
  LoopWait(const LoopWait&) = delete;
  LoopWait& operator=(const LoopWait&) = delete;

  // An iteration has ended.
  void begin();
  // The loop polls. The first iteration after that ends the wait.
  void note_poll() { polled_ = true; }
  void end(uint64_t now_ns) {
    if (std::exchange(polled_, false)) busy_poll_.end_wait(now_ns);
  }

  // The number of reads from clients since the start.
  uint64_t reads() const { return reads_; }
  // A client sent something. `replied_at`: reads() at the last reply to it.
  void note_read(uint64_t replied_at) { busy_poll_.note_read(reads_++ - replied_at); }

  BusyPollFacts facts() const;
  void close();

 private:
  static void on_busy_poll(uv_idle_t* handle) noexcept;

  const Options& options_;
  uv_idle_t no_sleep_;  // while it is active the loop does not sleep
  BusyPoll busy_poll_;
  BusyPoll::Setting setting_;
  std::string text_;     // from which setting_ was read
  bool polled_ = false;  // since the last iteration
  uint64_t reads_ = 0;
};

}  // namespace holdfast
