// A key as a mutex of the C++ standard library: std::lock_guard, std::unique_lock, std::shared_lock and
// std::scoped_lock work on it, across threads, processes and machines.
//
//   holdfast::Mutex printer(client, "printer");
//   const std::lock_guard guard(printer);
//   print(document, printer.token());
//
// Unlike a std::mutex, the lock can be lost while a thread holds it: see token() and is_locked().
//
// A Mutex is one pointer, and its functions in the library take and return no type of the standard library.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "holdfast/client.h"

namespace holdfast {

class MutexCore;

// Thread safety: any thread may call any function at any time. Each lock() is a separate acquisition, so
// the threads of this program exclude one another, too. As with std::mutex, the thread that locked the
// mutex must unlock it, and a thread that locks it twice waits for itself.
//
// Errors: all functions that acquire throw what those of Client throw (std::invalid_argument for options
// out of range, std::logic_error after fork() and on the client's own thread).
class Mutex {
 public:
  // `options` are for the exclusive lock; the shared lock uses them with Mode::kSharedLock. Their stop
  // token cancels each wait. `client` is not owned and must outlive the mutex.
  Mutex(Client& client, std::string_view key, const LockOptions& options = {})
      : Mutex(client, key.data(), key.size(), options) {}
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Waits without a time limit until the calling thread has the lock. Throws Error (result.h) if that
  // fails.
  void lock();
  // The next three return true if the calling thread has the lock now. They return false if other holders
  // have it, and after any other failure. try_lock() makes one attempt; the others wait for the given time,
  // rounded up to whole milliseconds, at most 36500 days.
  [[nodiscard]] bool try_lock();
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> wait) {
    return try_lock_ms(rounded_ms(wait));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> until) {
    const auto now = Clock::now();
    return until <= now ? try_lock() : try_lock_for(until - now);
  }
  // Releases the calling thread's lock and waits for the answer, which it does not report. Does nothing if
  // the thread has none, and in a child of fork().
  void unlock();

  // The same for the shared lock. A thread may have several.
  void lock_shared();
  [[nodiscard]] bool try_lock_shared();
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait) {
    return try_lock_shared_ms(rounded_ms(wait));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> until) {
    const auto now = Clock::now();
    return until <= now ? try_lock_shared() : try_lock_shared_for(until - now);
  }
  void unlock_shared();

  // Return the values of the calling thread's exclusive lock, as the functions of Hold do: fencing token,
  // state, remaining validity in ms. Return 0 or false if the thread has none. Never wait for a server.
  uint64_t token() const;
  bool is_locked() const;
  milliseconds validity() const { return milliseconds(validity_ms()); }

 private:
  template <class Rep, class Period>
  static int64_t rounded_ms(std::chrono::duration<Rep, Period> wait) {
    constexpr std::chrono::hours kLong{24 * 36500};
    return (wait < kLong ? std::chrono::ceil<milliseconds>(wait) : milliseconds(kLong)).count();
  }
  Mutex(Client& client, const char* key, size_t key_size, const LockOptions& options);
  bool try_lock_ms(int64_t wait_ms);
  bool try_lock_shared_ms(int64_t wait_ms);
  int64_t validity_ms() const;

  MutexCore* const core_;
};

}  // namespace holdfast
