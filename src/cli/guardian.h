// A small helper process that ends the command's process group if this process cannot. If this process dies
// without warning, for example by SIGKILL, the guardian kills the group at once. It also ends the group at
// the deadline that this process sent: this process may be stopped while the lock's TTL runs out. The
// guardian does not know locks.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace holdfast {

// In ms of CLOCK_BOOTTIME, which also counts while the machine is suspended.
struct GroupDeadline {
  static constexpr int64_t kNone = INT64_MAX;
  int64_t term_at_ms = kNone;
  int64_t kill_at_ms = kNone;
};

int64_t boot_time_ms() noexcept;

class Guardian {
 public:
  Guardian();  // starts the process; it guards no group yet
  ~Guardian() { dismiss(); }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Sends the group to the guardian. Call it before the first process of the group starts its command: if
  // this process dies earlier, nothing is left behind.
  void guard(pid_t group, const GroupDeadline& deadline) const;
  // Replaces the deadline. Does not block: if the guardian does not read, the old deadline stays.
  void set(const GroupDeadline& deadline) const;
  // Ends the guardian. Call it before waitpid() of the group's first process: afterwards the number of the
  // group may belong to another one.
  void dismiss();
  bool is(pid_t process) const { return process == pid_; }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;  // the write end; the guardian detects the end of this process as EOF
};

}  // namespace holdfast
