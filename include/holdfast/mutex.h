// A key as a mutex of the C++ standard library: std::lock_guard, std::unique_lock, std::shared_lock and
// std::scoped_lock work on it, across threads, processes and machines.
//
//   holdfast::Mutex printer(client, "printer");
//   const std::lock_guard guard(printer);
//   print(document, printer.token());
//
// Unlike a std::mutex, the lock can be lost while a thread holds it: see token() and is_locked().
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "holdfast/client.h"

namespace holdfast {

// Thrown if a lock could not be acquired although the call waits without a time limit, for example because
// a server rejects the login.
class Error : public std::runtime_error {
 public:
  explicit Error(Result result);
  const Result& result() const { return result_; }

 private:
  Result result_;
};

// Thread safety: any thread may call any function at any time. Each lock() is a separate acquisition, so
// the threads of this program exclude one another, too. As with std::mutex, the thread that locked the
// mutex must unlock it, and a thread that locks it twice waits for itself.
//
// Errors: all functions that acquire throw what those of Client throw (std::invalid_argument for options
// out of range, std::logic_error after fork() and on the client's own thread).
class Mutex {
 public:
  // `options` are for the exclusive lock; the shared lock uses them with Mode::kSharedLock. `client` is not
  // owned and must outlive the mutex.
  Mutex(Client& client, std::string key, LockOptions options = {});

  // Waits without a time limit until the calling thread has the lock. Throws Error if that fails.
  void lock();
  // The next three return true if the calling thread has the lock now. They return false if other holders
  // have it, and after any other failure. try_lock() makes one attempt; the others wait for the given time,
  // rounded up to whole milliseconds, at most 36500 days.
  bool try_lock() { return take(client_->try_lock(key_, options_)); }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
    return take(client_->lock_for(key_, rounded(wait), options_));
  }
  template <class Clock, class Duration>
  bool try_lock_until(std::chrono::time_point<Clock, Duration> until) {
    const auto now = Clock::now();
    return until <= now ? try_lock() : try_lock_for(until - now);
  }
  // Releases the calling thread's lock and waits for the answer, which it does not report. Does nothing if
  // the thread has none, and in a child of fork().
  void unlock();

  // The same for the shared lock. A thread may have several.
  void lock_shared();
  bool try_lock_shared() { return take_shared(client_->try_lock(key_, shared_options_)); }
  template <class Rep, class Period>
  bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
    return take_shared(client_->lock_for(key_, rounded(wait), shared_options_));
  }
  template <class Clock, class Duration>
  bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> until) {
    const auto now = Clock::now();
    return until <= now ? try_lock_shared() : try_lock_shared_for(until - now);
  }
  void unlock_shared();

  // Return the values of the calling thread's exclusive lock, as the functions of Hold do: fencing token,
  // state, remaining validity in ms. Return 0 or false if the thread has none. Never wait for a server.
  uint64_t token() const;
  bool is_locked() const;
  milliseconds validity() const;

 private:
  template <class Rep, class Period>
  static milliseconds rounded(std::chrono::duration<Rep, Period> wait) {
    constexpr std::chrono::hours kLong{24 * 36500};
    return wait < kLong ? std::chrono::ceil<milliseconds>(wait) : milliseconds(kLong);
  }
  bool take(Acquired acquired);
  const Hold& mine() const;
  bool take_shared(Acquired acquired);

  Client* client_;
  const std::string key_;
  const LockOptions options_;
  const LockOptions shared_options_;
  mutable std::mutex mutex_;
  std::map<std::thread::id, Hold> holds_;
  std::multimap<std::thread::id, Hold> shared_;
};

}  // namespace holdfast
