// The C library does not keep the reason of a failed write, so this file keeps it.
#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/status.h"

namespace holdfast {
namespace {

struct Failure {
  std::atomic<int> first_error = 0;
  std::atomic<bool> is_reported = false;
};

// Returns the failure of this process's only standard output.
Failure& failure() {
  static Failure of_stdout;
  return of_stdout;
}

void note_error() {
  int none = 0;
  failure().first_error.compare_exchange_strong(none, errno);
}

}  // namespace

void put(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_error();
}

bool flush() {
  if (std::fflush(stdout) != 0) note_error();
  if (failure().first_error == 0) return true;
  if (!failure().is_reported.exchange(true))
    fail(kNoOutput, "standard output cannot be written: {}", std::strerror(failure().first_error));
  return false;
}

bool can_write_error() {
  pollfd fds{STDERR_FILENO, POLLOUT, 0};
  return poll(&fds, 1, 0) == 1;
}

}  // namespace holdfast
