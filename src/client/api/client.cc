// The public classes Hold and Client, over HoldCore and ClientCore.
#include "holdfast/client.h"

#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "client/api/client_core.h"
#include "client/api/hold_core.h"
#include "client/base/address.h"

namespace holdfast {

namespace {

void check_ttl(milliseconds ttl) {
  static_assert(LockOptions::kLongestTtl.count() == kMaxTtlMs);
  if (ttl < LockOptions::kShortestTtl || ttl > LockOptions::kLongestTtl)
    throw std::invalid_argument("ttl must be 10 to 9007199254740991 ms, not " +
                                std::to_string(ttl.count()));
}

void check(const RetryBackoff& backoff) {
  if (backoff.first < milliseconds(1) || backoff.longest < backoff.first)
    throw std::invalid_argument(
        "backoff: the first pause must be at least 1 ms and at most the longest pause");
  if (!(backoff.factor >= 1 && backoff.factor <= RetryBackoff::kLargestFactor))
    throw std::invalid_argument("backoff: the factor must be 1 to 100");
}

void check(const LockOptions& options) {
  check_ttl(options.ttl);
  if (options.mode == Mode::kCountedLock && (options.limit < 1 || options.limit > INT32_MAX))
    throw std::invalid_argument("limit must be 1 to 2147483647, not " + std::to_string(options.limit));
  if (options.note.size() > LockOptions::kLongestNote)
    throw std::invalid_argument("note must be at most 256 bytes, not " +
                                std::to_string(options.note.size()));
  if (options.backoff) check(*options.backoff);
}

const std::string& nothing() {
  static const std::string kNothing;
  return kNothing;
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 9> kNames{
      "ok", "busy", "timeout", "expired", "not owner", "unreachable", "deadlock", "refused", "cancelled"};
  return kNames.at(static_cast<size_t>(outcome));
}

Hold::Hold(std::shared_ptr<HoldCore> core) : core_(std::move(core)) {}

Hold& Hold::operator=(Hold&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

Hold::~Hold() {
  if (core_ != nullptr && !core_->is_forked()) core_->detach();
}

bool Hold::is_locked() const { return core_ != nullptr && core_->is_locked(); }
milliseconds Hold::validity() const { return core_ == nullptr ? milliseconds(0) : core_->validity(); }
uint64_t Hold::token() const { return core_ == nullptr ? 0 : core_->token(); }
const std::string& Hold::key() const { return core_ == nullptr ? nothing() : core_->key(); }
const std::string& Hold::owner() const { return core_ == nullptr ? nothing() : core_->owner(); }

Result Hold::extend(milliseconds ttl) {
  check_ttl(ttl);
  if (core_ == nullptr) return {Outcome::kExpired, "this object holds no lock", {}};
  return core_->extend(ttl);
}

Result Hold::unlock(const UnlockOptions& options) {
  const milliseconds at_least = options.at_least;
  if (at_least.count() < 0 || at_least > LockOptions::kLongestTtl)
    throw std::invalid_argument("at_least must be 0 to 9007199254740991 ms, not " +
                                std::to_string(at_least.count()));
  if (core_ == nullptr) return {Outcome::kExpired, "this object holds no lock", {}};
  return core_->unlock(at_least);
}

void Hold::leave() {
  if (core_ != nullptr) core_->leave();
}

Client::Client(std::string_view where, const ClientOptions& options)
    : core_(std::make_shared<ClientCore>(client::open_place(where), options)) {}

ClientStats Client::stats() const {
  core_->forbid_after_fork();
  return core_->meter().stats();
}

// In a child of fork() the client's thread does not exist. The child leaks its copy of the ClientCore, so
// that no destructor waits for that thread.
Client::~Client() {
  if (core_->is_forked()) {
    static_cast<void>(new (std::nothrow) std::shared_ptr<ClientCore>(core_));
    return;
  }
  try {
    core_->close();
  } catch (const std::logic_error& fault) {  // a callback destroys its client, which would wait for itself
    std::fprintf(stderr, "holdfast: %s\n", fault.what());
    std::terminate();
  }
}

void Client::lock_async(const std::string& key, std::optional<milliseconds> wait,
                        const LockOptions& options, std::function<void(Acquired)> done) {
  core_->forbid_after_fork();
  check(options);
  if (!done) throw std::invalid_argument("lock_async needs a function for `done`");
  if (wait && wait->count() < 0) wait.reset();
  const auto hold = std::make_shared<HoldCore>(core_, key, wait, options, std::move(done));
  if (!core_->post([hold] { hold->start(); })) hold->refuse();
}

std::future<Acquired> Client::lock_future(const std::string& key, std::optional<milliseconds> wait,
                                          const LockOptions& options) {
  const auto promise = std::make_shared<std::promise<Acquired>>();
  lock_async(key, wait, options, [promise](Acquired a) { promise->set_value(std::move(a)); });
  return promise->get_future();
}

Acquired Client::await_lock(const std::string& key, std::optional<milliseconds> wait,
                            const LockOptions& options) {
  core_->forbid_to_wait();
  return lock_future(key, wait, options).get();
}

Acquired Client::try_lock(const std::string& key, const LockOptions& options) {
  return await_lock(key, std::nullopt, options);
}

Acquired Client::lock(const std::string& key, const LockOptions& options) {
  return await_lock(key, milliseconds(0), options);
}

// If `wait` is 0 or negative, makes one attempt.
Acquired Client::lock_for(const std::string& key, milliseconds wait, const LockOptions& options) {
  return wait.count() > 0 ? await_lock(key, wait, options) : try_lock(key, options);
}

Acquired Client::lock_until(const std::string& key, std::chrono::steady_clock::time_point until,
                            const LockOptions& options) {
  const auto now = std::chrono::steady_clock::now();
  if (until <= now) return try_lock(key, options);
  return lock_for(key, std::chrono::ceil<milliseconds>(until - now), options);
}

}  // namespace holdfast
