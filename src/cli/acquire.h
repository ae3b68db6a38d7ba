// Acquires a lock for a verb, and handles signals while it waits.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "cli/options.h"
#include "cli/signals.h"
#include "holdfast/client.h"

namespace holdfast {

// Passes a value from the client's thread to the main thread, with a descriptor that signals it. Both
// threads share ownership: a callback may run after the main thread stopped waiting.
template <typename T>
class Mailbox {
 public:
  Mailbox() : fd_(eventfd(0, EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Mailbox() { close(fd_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int fd() const { return fd_; }
  void leave(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    eventfd_write(fd_, 1);
  }
  T take() {  // the value, or a default if there is none
    const std::lock_guard lock(mutex_);
    return std::move(value_);
  }

 private:
  int fd_;
  std::mutex mutex_;
  T value_{};
};

// Returns the client's options for `lock`. Unless `quiet`, their callbacks report a wait on standard
// error: the holders of the lock, and the servers that cannot be used.
LockOptions options_of(const LockSettings& lock);

// Returns the servers that are unreachable or reject the request, each with its reason. If there are none,
// returns the message of `status` with the last text of a server.
std::string reason_of(const Status& status);

// Returns the message of `status`, with the reason of each server that did not succeed.
std::string answers_of(const Status& status);

// Reports on standard error when renewals of a hold begin to fail, and when they succeed again.
void report_renewals(const std::string& name, LockOptions& options);

struct Awaited {
  int signal = 0;  // the signal that ended the wait; 0: there is a result
  std::optional<Result<Hold>> result;
};

// Waits for the lock and for signals.
Awaited await_lock(Client& client, const Signals& signals, const LockSettings& lock,
                   const LockOptions& options);

struct Taken {
  std::optional<Hold> hold;
  int status = 0;  // the exit status if there is no hold; its reason is already printed
};

// Acquires the lock and reports a failure. `options` are options_of(lock) plus additions of the verb. A
// signal ends the wait with status 128 + n.
Taken take_lock(Client& client, const Signals& signals, const LockSettings& lock,
                const LockOptions& options);

}  // namespace holdfast
