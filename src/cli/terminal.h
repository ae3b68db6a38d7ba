// The terminal we were started on, and which process group has it: who is not in that group may not read,
// and does not get Ctrl-C.
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace holdfast {

class Terminal {
 public:
  Terminal();  // there may be none: then nobody ever has it
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_of(pid_t group) const;
  bool is_ours() const;
  // Whether a command should have it from the start: it would read from it, and it is ours to give. Not
  // where our output is a pipe: who reads that (a pager) is in our group, and needs the terminal more.
  bool is_for_command() const;
  // Needs SIGTTOU blocked. Where it has been closed meanwhile nothing happens.
  void give(pid_t group) const;
  void take_back(pid_t from) const;  // if `from` has it
  // As they were at first, if it is ours: an editor that was killed leaves it without echo.
  void restore_modes() const;

 private:
  int fd_;
  termios modes_{};
  bool has_modes_;  // in modes_, which therefore stands before it
};

}  // namespace holdfast
