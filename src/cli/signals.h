// The signals of `holdfast run`, `elect` and `lock`: read from a descriptor by the main thread, so that
// none of them interrupts anything, or ends us while the command still runs.
#pragma once

#include <functional>

namespace holdfast {

// Blocks, for as long as the process lives, what is forwarded to the command (INT TERM HUP QUIT USR1 USR2
// WINCH) or looked after by us (CHLD CONT TSTP), and TTOU, which would stop us as we take the terminal
// back. To be made before any thread is: threads inherit what is blocked.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }  // readable when next() has something
  int next() const;               // the number of a signal that has come; 0: none has
  // nohup started us: a hangup is neither forwarded nor lethal, and the command ignores it too.
  bool nohup() const { return nohup_; }

 private:
  int fd_;
  bool nohup_;
};

// Waits until `fd` can be read, or, unless -1, for so long (a harmless signal may make it longer): 0; or
// until a signal comes that would have ended us: its number.
int wait_or_signal(const Signals& signals, int fd, int timeout_ms = -1);

// Stops our process group, as Ctrl-Z would, until somebody continues us; next() gives the SIGCONT then.
// False, and at once, where nobody could continue us: in a group that no shell looks after. `reconsider` is
// asked when nothing can come between it and the stop any more but a SIGCONT, which undoes that: true, and
// we go on as if continued.
bool stop_ourselves(const std::function<bool()>& reconsider = {});

// In a child between fork and exec: every signal does what it does by default, and none is blocked.
void default_signals(bool nohup) noexcept;

}  // namespace holdfast
