// Mutex: the functions of Client under the names of the standard library.
#include "holdfast/mutex.h"

#include <utility>

namespace holdfast {

namespace {

std::string text_of(const Result& result) {
  return std::string(name_of(result.outcome)).append(": ").append(result.message);
}

// Releases the hold and waits for the answer, so that the next lock() in this program finds it free. A
// guard that is destroyed in a child of fork() has nothing to release, and its destructor must not throw.
void release(Hold& hold) {
  try {
    hold.unlock();
  } catch (const std::logic_error&) {
  }
}

LockOptions shared(LockOptions options) {
  options.mode = Mode::kSharedLock;
  return options;
}

}  // namespace

Error::Error(Result result) : std::runtime_error(text_of(result)), result_(std::move(result)) {}

Mutex::Mutex(Client& client, std::string key, LockOptions options)
    : client_(&client),
      key_(std::move(key)),
      options_(options),
      shared_options_(shared(std::move(options))) {}

bool Mutex::take(Acquired acquired) {
  if (!acquired.result) return false;
  const std::lock_guard lock(mutex_);
  holds_[std::this_thread::get_id()] = std::move(acquired.hold);
  return true;
}

bool Mutex::take_shared(Acquired acquired) {
  if (!acquired.result) return false;
  const std::lock_guard lock(mutex_);
  shared_.emplace(std::this_thread::get_id(), std::move(acquired.hold));
  return true;
}

void Mutex::lock() {
  Acquired acquired = client_->lock(key_, options_);
  const Result result = acquired.result;
  if (!take(std::move(acquired))) throw Error(result);
}

void Mutex::lock_shared() {
  Acquired acquired = client_->lock(key_, shared_options_);
  const Result result = acquired.result;
  if (!take_shared(std::move(acquired))) throw Error(result);
}

void Mutex::unlock() {
  std::unique_lock lock(mutex_);
  auto mine = holds_.extract(std::this_thread::get_id());
  lock.unlock();
  if (!mine.empty()) release(mine.mapped());
}

void Mutex::unlock_shared() {
  std::unique_lock lock(mutex_);
  auto mine = shared_.extract(std::this_thread::get_id());
  lock.unlock();
  if (!mine.empty()) release(mine.mapped());
}

const Hold& Mutex::mine() const {
  static const Hold kNone;
  const auto it = holds_.find(std::this_thread::get_id());
  return it == holds_.end() ? kNone : it->second;
}

uint64_t Mutex::token() const {
  const std::lock_guard lock(mutex_);
  return mine().token();
}

bool Mutex::is_locked() const {
  const std::lock_guard lock(mutex_);
  return mine().is_locked();
}

milliseconds Mutex::validity() const {
  const std::lock_guard lock(mutex_);
  return mine().validity();
}

}  // namespace holdfast
