// Runs a command as a job: in a process group of its own, with the terminal if this process had it. The
// command never outlives this process. This file does not know locks: a descriptor signals that the lock is
// lost.
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

// The conditions under which the command runs.
struct Supervision {
  int lost_fd = -1;                    // becomes readable when the command must end
  std::chrono::milliseconds grace{0};  // from TERM to KILL
  // What happens to the processes that remain in the group after the command ended by itself: they keep
  // running, wait_for_end() waits for them, or it ends them.
  enum class Rest : uint8_t { kRuns, kAwaited, kEnded };
  Rest rest = Rest::kRuns;
  std::function<void()> on_rest;  // of kAwaited: called once, if they do not end at once
  // Called after a stop, before the command resumes. Returns whether it may resume. Empty: always.
  std::function<bool()> may_resume;
  // Returns how much longer the command may run. After that time its whole group is dead. While this
  // process is stopped, the guardian ends the group. Called repeatedly, as the value may grow. Empty: no
  // limit.
  std::function<std::chrono::milliseconds()> time_left;
  // Called once, after TERM was sent because of `lost_fd`, `may_resume` or `time_left`. It must not block.
  std::function<void()> on_lost;
};

struct CommandEnd {
  bool started = true;        // false: the start failed, or the lock was lost before it
  bool lost = false;          // it was ended because the lock was lost
  bool asked_to_end = false;  // INT, TERM or QUIT was forwarded to it
  int status = 0;             // as in a shell: 128 + n after signal n
};

// For the main thread only: PR_SET_PDEATHSIG reacts to the end of the thread that forked.
class Child {
 public:
  explicit Child(const Signals& signals) : signals_(signals) {}
  ~Child();  // kills the group if an exception left wait_for_end() early
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts the command with the environment of this process and `more`, which replaces variables of the
  // same names. Returns 0. If the command cannot be started, prints the reason on standard error and
  // returns the status of a shell: 127 if it is not found, else 126. Throws std::system_error if no process
  // or descriptor can be allocated.
  int start(const std::vector<std::string>& argv, const Environment& more, const Supervision& how);

  // Forwards signals, and stops and resumes together with the command, until the command ended, and the
  // rest of its group as `how` says. After a loss it ends the whole group before it returns.
  CommandEnd wait_for_end(const Supervision& how);

 private:
  int await_exec(int errors, const std::string& name);
  int wait_ms(const Supervision& how) const;
  bool prolong(const Supervision& how);
  bool is_too_late(const Supervision& how) const;
  GroupDeadline deadline(const Supervision& how) const;
  void take_signals(const Supervision& how);
  void look();  // for SIGCHLD
  void reap_adopted();
  void stopped(int by);
  void stop_with_command(const Supervision& how, bool by_user);
  void resume(const Supervision& how);
  void send_cont();
  void lose(const Supervision& how);
  void end_group(const Supervision& how);
  bool group_lives() const;
  bool is_over() const;
  void await_rest(const Supervision& how);
  int reap();

  const Signals& signals_;
  Terminal terminal_;
  Guardian guardian_;
  pid_t pid_ = -1;  // also the id of its group, until reap()
  bool wants_terminal_ = false;
  bool stop_pending_ = false;  // because the terminal stopped the command
  bool hup_sent_ = false;
  bool ended_ = false;  // a zombie, so its pid cannot be reused
  std::chrono::steady_clock::time_point ended_at_;
  bool asked_to_end_ = false;
  bool lost_ = false;
  bool awaiting_ = false;  // the command ended, and the rest of its group has not
  bool reported_ = false;  // on_rest was called
  bool ending_ = false;    // TERM was sent to the group, and the whole group must end
  bool killed_ = false;
  int64_t dead_by_ms_ = GroupDeadline::kNone;  // the deadline last sent to the guardian
  std::chrono::steady_clock::time_point kill_at_;
};

}  // namespace holdfast
