// The signals of `holdfast run`, `elect` and `lock`. The main thread reads them from a descriptor, so that
// no signal interrupts a call, or ends this process while the command still runs.
#pragma once

#include <functional>

namespace holdfast {

// Blocks three groups of signals until the process ends: those forwarded to the command (INT TERM HUP QUIT
// USR1 USR2 WINCH), those handled here (CHLD CONT TSTP), and TTOU. TTOU would stop this process when it
// takes the terminal back. Construct it before any thread starts: threads inherit the blocked signals.
class Signals {
 public:
  // What a write to an output without a reader does: it fails, or it ends the process without a word, as
  // with the verbs that handle no signals.
  enum class BrokenPipe { kFails, kEnds };

  explicit Signals(BrokenPipe broken_pipe = BrokenPipe::kFails);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }  // readable when a signal is pending
  int next() const;               // the number of a pending signal; 0 if there is none
  // Whether nohup started this process. Then SIGHUP is neither forwarded nor fatal, and the command ignores
  // it too.
  bool nohup() const { return nohup_; }

 private:
  int fd_;
  bool nohup_;
};

// Waits until `fd` is readable or, unless `timeout_ms` is -1, until the timeout; returns 0 then. A harmless
// signal may make the wait longer. Returns at once the number of a signal that ends a process by default.
int wait_or_signal(const Signals& signals, int fd, int timeout_ms = -1);

// Stops the own process group, as Ctrl-Z does, until a SIGCONT resumes it; next() returns that SIGCONT
// then. Returns false at once in an orphaned process group, which no shell could resume. `reconsider` is
// called as the last step before the stop: after it only a SIGCONT can arrive, and that cancels the stop.
// If it returns true, the process does not stop and continues as after a SIGCONT.
bool stop_process(const std::function<bool()>& reconsider = {});

// For a child between fork and exec: sets each signal to its default action and unblocks all. With `nohup`,
// SIGHUP stays ignored.
void default_signals(bool nohup) noexcept;

}  // namespace holdfast
