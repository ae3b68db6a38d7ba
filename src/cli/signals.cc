// Linux only: signalfd.
#include "cli/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace holdfast {
namespace {

constexpr std::array kWatched = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGCHLD, SIGCONT, SIGTSTP, SIGWINCH};

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (int number : numbers) sigaddset(&set, number);
  return set;
}

bool ignored(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(BrokenPipe broken_pipe) : nohup_(ignored(SIGHUP)) {
  sigset_t watched = set_of({});
  for (int number : kWatched) sigaddset(&watched, number);
  fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  sigaddset(&watched, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  signal(SIGCHLD, SIG_DFL);  // some parents leave it ignored, which discards exit statuses
  // A message without a reader must not end a process whose command or lock needs it.
  if (broken_pipe == BrokenPipe::kFails) signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() { close(fd_); }

int Signals::next() const {
  signalfd_siginfo info{};
  if (read(fd_, &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

int wait_or_signal(const Signals& signals, int fd, int timeout_ms) {
  while (true) {
    pollfd fds[] = {{signals.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
    const int ready = poll(fds, 2, timeout_ms);
    while (int number = signals.next()) {
      if (number == SIGTSTP) stop_process();
      const bool harmless = number == SIGCHLD || number == SIGCONT || number == SIGTSTP ||
                            number == SIGWINCH || (number == SIGHUP && signals.nohup());
      if (!harmless) return number;
    }
    if (ready == 0 || fds[1].revents != 0) return 0;
  }
}

bool stop_process(const std::function<bool()>& reconsider) {
  const sigset_t stop = set_of({SIGTSTP});
  kill(0, SIGTSTP);
  if (reconsider && reconsider()) kill(0, SIGCONT);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // the process stops here, until SIGCONT
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) == 1;
}

void default_signals(bool nohup) noexcept {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGHUP || !nohup) signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace holdfast
