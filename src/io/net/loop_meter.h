// Measures the loop's iterations from inside, for DEBUG LOOP: the CPU time of the loop's thread from one
// poll to the next. On a busy or virtual machine, elapsed time also contains the work of other processes.
// Off by default, because the clock of CPU time costs a system call for each iteration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>

#include "core/base/config.h"

namespace holdfast {

class LoopMeter {
 public:
  // Begins or ends a measurement. Returns the figures since the last begin.
  LoopTimes measure(bool on) {
    on_ = on;
    last_ns_ = 0;  // this iteration contains the command itself, and does not count
    return std::exchange(times_, {});
  }
  // For the end of each iteration.
  void count() {
    if (on_) [[unlikely]]
      count_now();
  }

 private:
  void count_now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    const auto now_ns = static_cast<uint64_t>(t.tv_sec * 1'000'000'000 + t.tv_nsec);
    const uint64_t before_ns = std::exchange(last_ns_, now_ns);
    if (before_ns == 0) return;
    const uint64_t us = (now_ns - before_ns) / 1000;
    ++times_.iterations;
    times_.over_1ms += us > 1000 ? 1 : 0;
    times_.longest_us = std::max(times_.longest_us, us);
  }

  bool on_ = false;
  uint64_t last_ns_ = 0;  // CPU time at the end of the last iteration; 0: not known
  LoopTimes times_;
};

}  // namespace holdfast
