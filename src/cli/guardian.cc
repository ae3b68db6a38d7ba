// The pipe carries the group's number, then a byte as a dismissal. Linux only: close_range, pipe2.
#include "cli/guardian.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

namespace holdfast {
namespace {

bool read_all(int fd, void* to, size_t size) noexcept {
  ssize_t got = 0;
  do got = read(fd, to, size);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(size);  // so few bytes come at once or not at all
}

// Forked from a program with threads: only what is async-signal-safe. In a session of its own, and deaf to
// signals, so that what ends a whole terminal does not end it before us; it keeps no file or folder in use.
[[noreturn]] void stand_guard(int pipe) noexcept {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  if (pipe > 0) close_range(0, static_cast<unsigned>(pipe - 1), 0);
  close_range(static_cast<unsigned>(pipe + 1), ~0U, 0);
  [[maybe_unused]] const int moved = chdir("/");
  pid_t group = 0;
  char dismissed = 0;
  if (read_all(pipe, &group, sizeof group) && !read_all(pipe, &dismissed, 1)) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

Guardian::Guardian() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = fork();
  if (pid_ == 0) stand_guard(ends[0]);
  close(ends[0]);
  pipe_ = ends[1];
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

void Guardian::guard(pid_t group) const {
  [[maybe_unused]] const ssize_t told = write(pipe_, &group, sizeof group);
}

void Guardian::dismiss() {
  if (pid_ < 0) return;
  [[maybe_unused]] const ssize_t told = write(pipe_, "", 1);
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

}  // namespace holdfast
