// A key as a mutex of the C++ standard library: std::lock_guard, std::unique_lock, std::shared_lock and
// std::scoped_lock work on it, across threads, processes and machines.
//
//   holdfast::Mutex printer(client, "printer");
//   const std::lock_guard guard(printer);
//   print(document, printer.token());
//
// Unlike a mutex it can be lost: see token() and is_locked().
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "holdfast/client.h"

namespace holdfast {

// A lock could not be taken for a reason other than that others have it.
class Error : public std::runtime_error {
 public:
  explicit Error(Result result);
  const Result& result() const { return result_; }

 private:
  Result result_;
};

// Any thread may call any function at any time. Each lock() is an acquisition of its own, so that threads
// exclude one another, too; as with std::mutex the thread that locked it unlocks it, and one that locks it
// twice waits for itself. The client must outlive it.
class Mutex {
 public:
  // `options` are for the exclusive lock, and with Mode::kSharedLock for the shared one.
  Mutex(Client& client, std::string key, LockOptions options = {});

  void lock();  // throws Error
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
  void unlock();

  void lock_shared();  // throws Error
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

  // Of this thread's exclusive lock, as in Hold; 0 and false where it has none.
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
