// The pipe carries the id of the group, then deadlines. Linux only: close_range, pipe2, timerfd.
#include "cli/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

namespace holdfast {
namespace {

// These functions run in a fork of a program with threads: only async-signal-safe calls are allowed.

bool read_all(int fd, void* to, size_t size) noexcept {
  ssize_t got = 0;
  do got = read(fd, to, size);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(size);  // so few bytes arrive in one piece or not at all
}

// Sets the timer to the next deadline; creates it at the first one. A timeout of poll() would not count the
// time of a suspend; this timer does.
void arm(int& timer, const GroupDeadline& deadline) noexcept {
  const int64_t at_ms = std::min(deadline.term_at_ms, deadline.kill_at_ms);
  if (at_ms == GroupDeadline::kNone) return;
  if (timer < 0) timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  itimerspec when{};
  when.it_value.tv_sec = std::max<int64_t>(at_ms, 1) / 1000;
  when.it_value.tv_nsec = std::max<int64_t>(at_ms, 1) % 1000 * 1000000;
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

// Sends the signals that are due. CONT follows TERM, because a stopped process cannot end.
void do_due(pid_t group, GroupDeadline& deadline) noexcept {
  const int64_t now_ms = boot_time_ms();
  if (now_ms >= deadline.kill_at_ms) {
    kill(-group, SIGKILL);
    deadline = {};
  } else if (now_ms >= deadline.term_at_ms) {
    kill(-group, SIGTERM);
    kill(-group, SIGCONT);
    deadline.term_at_ms = GroupDeadline::kNone;
  }
}

// Returns when the pipe closes, so when the parent ended. A new deadline from the pipe comes before an
// expired timer, which may belong to the old deadline.
void watch_over(int pipe, pid_t group) noexcept {
  GroupDeadline deadline;
  int timer = -1;
  while (true) {
    pollfd fds[] = {{pipe, POLLIN, 0}, {timer, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents == 0) {
      do_due(group, deadline);
    } else if (!read_all(pipe, &deadline, sizeof deadline)) {
      return;
    }
    const bool armed = deadline.kill_at_ms != GroupDeadline::kNone;
    if (!armed && timer >= 0) close(std::exchange(timer, -1));
    arm(timer, deadline);
  }
}

// The main function of the guardian. It runs in a session of its own with all signals blocked, so that the
// end of a terminal does not end it before the parent. It keeps no file or folder in use.
[[noreturn]] void run_guardian(int pipe) noexcept {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  if (pipe > 0) close_range(0, static_cast<unsigned>(pipe - 1), 0);
  close_range(static_cast<unsigned>(pipe + 1), ~0U, 0);
  [[maybe_unused]] const int moved = chdir("/");
  pid_t group = 0;
  if (read_all(pipe, &group, sizeof group)) {
    watch_over(pipe, group);
    kill(-group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

int64_t boot_time_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Guardian::Guardian() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = fork();
  if (pid_ == 0) run_guardian(ends[0]);
  close(ends[0]);
  pipe_ = ends[1];
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
}

void Guardian::guard(pid_t group, const GroupDeadline& deadline) const {
  [[maybe_unused]] const ssize_t sent = write(pipe_, &group, sizeof group);
  set(deadline);
}

void Guardian::set(const GroupDeadline& deadline) const {
  [[maybe_unused]] const ssize_t sent = write(pipe_, &deadline, sizeof deadline);
}

// KILL comes before close(): the guardian must not see the closed pipe, which means that the parent ended.
void Guardian::dismiss() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  close(pipe_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

}  // namespace holdfast
