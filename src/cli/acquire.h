// Takes a lock for a verb, while signals are heard.
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

// A value that the client's thread leaves, and a descriptor that says so to the main thread. Shared by
// both: a callback may come after the main thread has given up.
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
  T take() {  // what was left, or a default
    const std::lock_guard lock(mutex_);
    return std::move(value_);
  }

 private:
  int fd_;
  std::mutex mutex_;
  T value_{};
};

// They tell on standard error of a wait who holds the lock and which servers cannot be used, unless
// `quiet`.
LockOptions options_of(const LockWish& wish);

// Which servers are away or refuse, and why; else its message, and what the last server said.
std::string reason_of(const Result& result);

// The same with what each server said that did not do it.
std::string answers_of(const Result& result);

// Tells on stderr when renewals of a hold begin to fail, and when they succeed again.
void tell_renewals(const std::string& name, LockOptions& options);

// Waits for the lock, while signals are heard: the signal that ended the wait, or 0 and what it came to.
int await_lock(Client& client, const Signals& signals, const LockWish& wish, const LockOptions& options,
               Acquired& acquired);

struct Taken {
  std::optional<Hold> hold;
  int status = 0;  // without a hold; what it means has been said
};

// `options` are those of the wish, and what the verb adds. A signal ends the wait: its status is 128 + n.
Taken take_lock(Client& client, const Signals& signals, const LockWish& wish, const LockOptions& options);

}  // namespace holdfast
