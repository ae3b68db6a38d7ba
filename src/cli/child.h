// A command as a job of ours: in a process group of its own, with the terminal if it was ours, and never
// without us. It knows nothing of locks: whoever holds one tells by a descriptor that it is lost.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/guardian.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace holdfast {

using Environment = std::vector<std::pair<std::string, std::string>>;

// Under what the command runs.
struct Supervision {
  int lost_fd = -1;                    // becomes readable when the command must end
  std::chrono::milliseconds grace{0};  // then, from TERM to KILL
  // What a command that ended by itself leaves running in its group is made to end, too.
  bool whole_group = false;
  // Asked after we have been stopped, before the command goes on: may it still? Empty: it may.
  std::function<bool()> may_go_on;
  // How much longer the command may run. All of its group is dead when that is over, also while we stand
  // still: the guardian does it then. Asked again and again, as it may grow. Empty: for ever.
  std::function<std::chrono::milliseconds()> time_left;
  // Called after TERM was sent because of `lost_fd`, `may_go_on` or `time_left`, once. It must not wait.
  std::function<void()> on_lost;
};

struct CommandEnd {
  bool started = true;        // false: it could not be, or was lost before
  bool lost = false;          // it was made to end
  bool asked_to_end = false;  // INT, TERM or QUIT was forwarded to it
  int status = 0;             // as a shell has it: 128 + n after signal n
};

// On the main thread only: what PR_SET_PDEATHSIG watches is the thread that forked.
class Child {
 public:
  explicit Child(const Signals& signals) : signals_(signals) {}
  ~Child();  // kills the group, where an exception has kept wait_for_end() from its end
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // `more` is added to our environment, in place of what had those names. Returns 0, or, where the command
  // could not be started, the status of a shell (127: not found, 126), having told why on standard error.
  // Throws std::system_error where there are no processes or descriptors left.
  int start(const std::vector<std::string>& argv, const Environment& more, const Supervision& how);

  // Forwards signals, and stops and goes on with the command, until it has ended. What it leaves running
  // in its group is let alone; not so when `lost_fd` spoke, or with `whole_group`: then all of it has
  // ended.
  CommandEnd wait_for_end(const Supervision& how);

 private:
  int await_exec(int errors, const std::string& name);
  int wait_ms(const Supervision& how) const;
  bool prolong(const Supervision& how);
  bool is_too_late(const Supervision& how) const;
  GroupDeadline deadline(const Supervision& how) const;
  void take_signals(const Supervision& how);
  void look();  // after SIGCHLD
  void stopped(int by);
  void stop_with_it(const Supervision& how, bool by_user);
  void go_on(const Supervision& how);
  void hand_on();
  void lose(const Supervision& how);
  void end_group(const Supervision& how);
  bool group_lives() const;
  bool is_over() const;
  int reap();

  const Signals& signals_;
  Terminal terminal_;
  Guardian guardian_;
  pid_t pid_ = -1;  // and its group's number, until reap()
  bool wants_terminal_ = false;
  bool stop_too_ = false;  // as the command was stopped by the terminal
  bool hung_up_ = false;
  bool ended_ = false;  // a zombie, which keeps pid_ ours
  bool asked_to_end_ = false;
  bool lost_ = false;
  bool ending_ = false;  // TERM was sent to the group, which ends as a whole
  bool killed_ = false;
  int64_t dead_by_ms_ = GroupDeadline::kNone;  // as the guardian was told
  std::chrono::steady_clock::time_point kill_at_;
};

}  // namespace holdfast
