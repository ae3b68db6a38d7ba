// Mutex: the functions of Client under the names of the standard library.
#include "holdfast/mutex.h"

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast {

namespace {

// Releases the hold and waits for the answer, so that the next lock() in this program finds it free. A
// guard that is destroyed in a child of fork() has nothing to release, and its destructor must not throw.
void release(Hold& hold) {
  try {
    static_cast<void>(hold.unlock());
  } catch (const std::logic_error&) {
  }
}

LockOptions shared(LockOptions options) {
  options.mode = Mode::kSharedLock;
  return options;
}

}  // namespace

class MutexCore {
 public:
  MutexCore(Client& client, std::string key, const LockOptions& options)
      : client_(client), key_(std::move(key)), options_(options), shared_options_(shared(options)) {}

  Result<Hold> acquire() { return client_.lock(key_, options_); }
  Result<Hold> acquire_for(milliseconds wait) { return client_.lock_for(key_, wait, options_); }
  Result<Hold> acquire_shared() { return client_.lock(key_, shared_options_); }
  Result<Hold> acquire_shared_for(milliseconds wait) {
    return client_.lock_for(key_, wait, shared_options_);
  }

  bool take(Result<Hold> acquired) {
    if (!acquired) return false;
    const std::lock_guard lock(mutex_);
    holds_[std::this_thread::get_id()] = *std::move(acquired);
    return true;
  }
  bool take_shared(Result<Hold> acquired) {
    if (!acquired) return false;
    const std::lock_guard lock(mutex_);
    shared_.emplace(std::this_thread::get_id(), *std::move(acquired));
    return true;
  }

  void unlock() { release_of(holds_); }
  void unlock_shared() { release_of(shared_); }

  // `read` gets the calling thread's hold, or an empty one.
  template <class Read>
  auto of_thread(Read read) const {
    static const Hold kNone;
    const std::lock_guard lock(mutex_);
    const auto it = holds_.find(std::this_thread::get_id());
    return read(it == holds_.end() ? kNone : it->second);
  }

 private:
  template <class Holds>
  void release_of(Holds& holds) {
    std::unique_lock lock(mutex_);
    auto mine = holds.extract(std::this_thread::get_id());
    lock.unlock();
    if (!mine.empty()) release(mine.mapped());
  }

  Client& client_;
  const std::string key_;
  const LockOptions options_;
  const LockOptions shared_options_;
  mutable std::mutex mutex_;  // guards the next two
  std::map<std::thread::id, Hold> holds_;
  std::multimap<std::thread::id, Hold> shared_;
};

Mutex::Mutex(Client& client, const char* key, size_t key_size, const LockOptions& options)
    : core_(new MutexCore(client, std::string(key, key_size), options)) {}
Mutex::~Mutex() { delete core_; }

void Mutex::lock() {
  Result<Hold> acquired = core_->acquire();
  if (!acquired) throw_error(acquired);
  core_->take(std::move(acquired));
}

void Mutex::lock_shared() {
  Result<Hold> acquired = core_->acquire_shared();
  if (!acquired) throw_error(acquired);
  core_->take_shared(std::move(acquired));
}

bool Mutex::try_lock() { return try_lock_ms(0); }
bool Mutex::try_lock_shared() { return try_lock_shared_ms(0); }
bool Mutex::try_lock_ms(int64_t wait_ms) { return core_->take(core_->acquire_for(milliseconds(wait_ms))); }
bool Mutex::try_lock_shared_ms(int64_t wait_ms) {
  return core_->take_shared(core_->acquire_shared_for(milliseconds(wait_ms)));
}

void Mutex::unlock() { core_->unlock(); }
void Mutex::unlock_shared() { core_->unlock_shared(); }

uint64_t Mutex::token() const {
  return core_->of_thread([](const Hold& hold) { return hold.token(); });
}

bool Mutex::is_locked() const {
  return core_->of_thread([](const Hold& hold) { return hold.is_locked(); });
}

int64_t Mutex::validity_ms() const {
  return core_->of_thread([](const Hold& hold) { return hold.validity().count(); });
}

}  // namespace holdfast
