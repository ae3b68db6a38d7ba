// The controlling terminal of this process, and its foreground process group. A process outside that group
// may not read from the terminal, and does not get Ctrl-C.
#pragma once

#include <sys/types.h>
#include <termios.h>

namespace holdfast {

class Terminal {
 public:
  Terminal();  // without a terminal, is_of() is always false
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_of(pid_t group) const;
  bool is_foreground() const;
  // Whether a command should get the terminal at its start: standard input is a terminal, and the own group
  // is its foreground group. False if standard output is a pipe: its reader (a pager) is in the own group,
  // and needs the terminal more.
  bool is_for_command() const;
  // Makes `group` the foreground group. SIGTTOU must be blocked. Does nothing on a closed terminal.
  void give(pid_t group) const;
  void reclaim(pid_t from) const;  // if `from` has it
  // Restores the modes of the start, if the own group has the terminal: a killed editor leaves it without
  // echo.
  void restore_modes() const;

 private:
  int fd_;
  termios modes_{};
  bool has_modes_;  // modes_ is valid; initialised after modes_, so declared after it
};

}  // namespace holdfast
