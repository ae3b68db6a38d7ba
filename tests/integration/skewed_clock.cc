// Wrong clocks for a process under test. This file replaces libc's clock_gettime: linked into a program, or
// as a shared library for a program that starts with LD_PRELOAD. HOLDFAST_TEST_CLOCK="wall_us rate_ppm" has
// the microseconds by which the wall clock is ahead, and by how many millionths the clocks run too fast.
// Without the variable the clocks are right. The code must not call functions that read the time.
#include "skewed_clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kNsPerSecond = 1000000000;

int64_t read_ns(clockid_t clock) {
  timespec t{};
  syscall(SYS_clock_gettime, clock, &t);
  return int64_t{t.tv_sec} * kNsPerSecond + t.tv_nsec;
}

struct Skew {
  int64_t wall_ns = 0;
  double rate = 0;           // the time gained per unit of time
  int64_t monotonic_ns = 0;  // the clocks at the start of the process
  int64_t boottime_ns = 0;

  Skew() : monotonic_ns(read_ns(CLOCK_MONOTONIC)), boottime_ns(read_ns(CLOCK_BOOTTIME)) {
    const char* wanted = std::getenv("HOLDFAST_TEST_CLOCK");
    if (wanted == nullptr) return;
    char* rest = nullptr;
    wall_ns = std::strtoll(wanted, &rest, 10) * 1000;
    rate = static_cast<double>(std::strtoll(rest, nullptr, 10)) / 1e6;
  }
  int64_t gained_ns(int64_t since_ns, int64_t now_ns) const {
    return static_cast<int64_t>(static_cast<double>(now_ns - since_ns) * rate);
  }
};

int64_t skewed_ns(clockid_t clock) {
  static const Skew kSkew;
  const int64_t now_ns = read_ns(clock);
  if (clock == CLOCK_REALTIME) return now_ns + kSkew.wall_ns;
  if (clock == CLOCK_MONOTONIC) return now_ns + kSkew.gained_ns(kSkew.monotonic_ns, now_ns);
  if (clock == CLOCK_BOOTTIME) return now_ns + kSkew.gained_ns(kSkew.boottime_ns, now_ns);
  return now_ns;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
  timespec probe{};
  if (const long error = syscall(SYS_clock_gettime, clock, &probe); error != 0) return -1;
  const int64_t now_ns = skewed_ns(clock);
  t->tv_sec = now_ns / kNsPerSecond;
  t->tv_nsec = now_ns % kNsPerSecond;
  return 0;
}

namespace holdfast::integration {

int64_t true_now_ns() { return read_ns(CLOCK_MONOTONIC); }

}  // namespace holdfast::integration
