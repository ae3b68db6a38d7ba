// Uses /dev/tty and the job control of POSIX.
#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast {

// Opens /dev/tty instead of standard input: a command in a pipe may also ask for a password on the
// terminal.
Terminal::Terminal()
    : fd_(open("/dev/tty", O_RDWR | O_CLOEXEC)), has_modes_(fd_ >= 0 && tcgetattr(fd_, &modes_) == 0) {}

Terminal::~Terminal() {
  if (fd_ >= 0) close(fd_);
}

bool Terminal::is_of(pid_t group) const { return fd_ >= 0 && tcgetpgrp(fd_) == group; }

bool Terminal::is_foreground() const { return is_of(getpgrp()); }

bool Terminal::is_for_command() const {
  struct stat out {};
  const bool piped = fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode);
  return isatty(STDIN_FILENO) != 0 && is_foreground() && !piped;
}

void Terminal::give(pid_t group) const { tcsetpgrp(fd_, group); }

void Terminal::reclaim(pid_t from) const {
  if (is_of(from)) give(getpgrp());
}

void Terminal::restore_modes() const {
  if (has_modes_ && is_foreground()) tcsetattr(fd_, TCSADRAIN, &modes_);
}

}  // namespace holdfast
