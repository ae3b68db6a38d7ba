// The public classes Hold, Client and LockAwaitable, over HoldCore, ClientCore and Awaiting.
#include "holdfast/client.h"

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "client/api/acquisition.h"
#include "client/api/checks.h"
#include "client/api/client_core.h"
#include "client/api/hold_core.h"
#include "client/base/address.h"

namespace holdfast {

namespace {

Status empty() { return {Outcome::kExpired, "this object holds no lock"}; }

}  // namespace

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
std::string_view Hold::key() const { return core_ == nullptr ? std::string_view() : core_->key(); }
std::string_view Hold::owner() const { return core_ == nullptr ? std::string_view() : core_->owner(); }

Status Hold::extend(milliseconds ttl) {
  check_ttl(ttl);
  if (core_ == nullptr) return empty();
  return core_->extend(ttl);
}

Status Hold::unlock(const UnlockOptions& options) {
  const milliseconds at_least = options.at_least;
  if (at_least.count() < 0 || at_least > LockOptions::kLongestTtl)
    throw std::invalid_argument("at_least must be 0 to 9007199254740991 ms, not " +
                                std::to_string(at_least.count()));
  if (core_ == nullptr) return empty();
  return core_->unlock(at_least);
}

void Hold::leave() {
  if (core_ != nullptr) core_->leave();
}

Client::Client(std::string_view where, const ClientOptions& options)
    : core_(std::make_shared<ClientCore>(client::client_config_of(where), options)) {}

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

// --- the three verbs, in four forms each ---

namespace {

Result<Hold> block(const std::shared_ptr<ClientCore>& client, std::string_view key, WaitLimit wait,
                   const LockOptions& options) {
  client->forbid_to_wait();
  return acquire_future(client, key, wait, options).get();
}

}  // namespace

Result<Hold> Client::try_lock(std::string_view key, const LockOptions& options) {
  return block(core_, key, WaitLimit::none(), options);
}

std::future<Result<Hold>> Client::try_lock_future(std::string_view key, const LockOptions& options) {
  return acquire_future(core_, key, WaitLimit::none(), options);
}

void Client::try_lock_async(std::string_view key, const LockOptions& options, OnResult done) {
  acquire(core_, key, WaitLimit::none(), options, std::move(done));
}

LockAwaitable Client::co_try_lock(std::string_view key, const LockOptions& options) {
  return LockAwaitable(std::make_shared<Awaiting>(core_, key, WaitLimit::none(), options));
}

Result<Hold> Client::lock(std::string_view key, const LockOptions& options) {
  return block(core_, key, WaitLimit::unlimited(), options);
}

std::future<Result<Hold>> Client::lock_future(std::string_view key, const LockOptions& options) {
  return acquire_future(core_, key, WaitLimit::unlimited(), options);
}

void Client::lock_async(std::string_view key, const LockOptions& options, OnResult done) {
  acquire(core_, key, WaitLimit::unlimited(), options, std::move(done));
}

LockAwaitable Client::co_lock(std::string_view key, const LockOptions& options) {
  return LockAwaitable(std::make_shared<Awaiting>(core_, key, WaitLimit::unlimited(), options));
}

Result<Hold> Client::lock_for(std::string_view key, milliseconds wait, const LockOptions& options) {
  return block(core_, key, WaitLimit::of(wait), options);
}

std::future<Result<Hold>> Client::lock_for_future(std::string_view key, milliseconds wait,
                                                  const LockOptions& options) {
  return acquire_future(core_, key, WaitLimit::of(wait), options);
}

void Client::lock_for_async(std::string_view key, milliseconds wait, const LockOptions& options,
                            OnResult done) {
  acquire(core_, key, WaitLimit::of(wait), options, std::move(done));
}

LockAwaitable Client::co_lock_for(std::string_view key, milliseconds wait, const LockOptions& options) {
  return LockAwaitable(std::make_shared<Awaiting>(core_, key, WaitLimit::of(wait), options));
}

Result<Hold> Client::lock_until(std::string_view key, std::chrono::steady_clock::time_point until,
                                const LockOptions& options) {
  const auto now = std::chrono::steady_clock::now();
  if (until <= now) return try_lock(key, options);
  return lock_for(key, std::chrono::ceil<milliseconds>(until - now), options);
}

LockAwaitable::LockAwaitable(std::shared_ptr<Awaiting> awaiting) : awaiting_(std::move(awaiting)) {}

LockAwaitable::~LockAwaitable() {
  if (awaiting_ != nullptr) awaiting_->abandon();
}

void LockAwaitable::begin(void (*resume)(void* frame), void* frame) { awaiting_->begin(resume, frame); }

Result<Hold> LockAwaitable::take() { return awaiting_->take(); }

}  // namespace holdfast
