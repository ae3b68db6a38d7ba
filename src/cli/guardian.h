// A tiny process beside us, which ends the command's process group where we do not. When we end without a
// word, by SIGKILL say, it kills the group at once. When the time that we told it is over, it ends the
// group, too: we may stand still, and the lock's time goes on. It knows nothing of locks.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace holdfast {

// Milliseconds of CLOCK_BOOTTIME, which goes on while the machine sleeps.
struct GroupDeadline {
  static constexpr int64_t kNone = INT64_MAX;
  int64_t term_at_ms = kNone;
  int64_t kill_at_ms = kNone;
};

int64_t boot_time_ms() noexcept;

class Guardian {
 public:
  Guardian();  // nobody is guarded yet
  ~Guardian() { dismiss(); }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Before the first process of the group does anything: who dies in between has left nothing behind.
  void guard(pid_t group, const GroupDeadline& deadline) const;
  // In place of the deadline before. Does not wait: where the guardian does not read, the old one stays.
  void set(const GroupDeadline& deadline) const;
  // While the group's first process has not been waited for: later its number may belong to others.
  void dismiss();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;  // the writing end; that it closes is how the guardian sees our end
};

}  // namespace holdfast
