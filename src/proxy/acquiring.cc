#include "proxy/acquiring.h"

#include <utility>

#include "client/base/validity.h"
#include "proxy/gateway.h"
#include "proxy/operations.h"
#include "proxy/owner_name.h"

namespace holdfast::proxy {

using client::Loop;

Acquiring::Acquiring(Gateway& gateway, Wish wish, std::function<void()> queued,
                     std::function<void(Result)> done)
    : gateway_(gateway),
      wish_(std::move(wish)),
      slot_(new_slot(wish_.value)),
      queued_(std::move(queued)),
      done_(std::move(done)) {}

Acquiring::~Acquiring() = default;

void Acquiring::begin() {
  Quorum::Wish wish;
  wish.key = wish_.key;
  wish.slot = slot_;
  wish.mode = wish_.mode;
  wish.limit = wish_.limit;
  wish.note = wish_.note;
  wish.ttl = server_ttl(gateway_, wish_.ttl, gateway_.recent_round());
  wish.delay = wish_.delay;
  wish.wait = wish_.wait;
  lock_ = gateway_.quorum().acquire(wish);
  lock_->changed = [self = shared_from_this()] { self->look(); };
  begun_ = Loop::time_us();
  lock_->driver->acquire();
}

void Acquiring::cancel() {
  done_ = nullptr;
  queued_ = nullptr;
  if (lock_ == nullptr) return;
  lock_->changed = nullptr;
  lock_->driver->release({0});
  lock_.reset();
}

void Acquiring::look() {
  if (lock_ == nullptr) return;
  switch (lock_->driver->state()) {
    case LockDriver::State::kHeld:
      return look_at_hold();
    case LockDriver::State::kQueued:
      waited_ = true;
      if (const auto queued = std::exchange(queued_, nullptr)) queued();
      return;
    case LockDriver::State::kOver:
      return look_at_end();
    default:
      return;
  }
}

void Acquiring::look_at_end() {
  status_ = lock_->driver->status();
  switch (status_.outcome) {
    case Outcome::kBusy:
      return end(Result::kBusy);
    case Outcome::kTimeout:
      return end(Result::kTimeout);
    case Outcome::kDeadlock:
      return end(Result::kDeadlock);
    default:
      return end(Result::kFailed);
  }
}

// The driver stays until the servers beyond the quorum have the hold, too, and then forgets it: the proxy
// renews and releases the hold by its owner.
void Acquiring::look_at_hold() {
  LockDriver& driver = *lock_->driver;
  if (renewing_) {
    const Status* renewal = driver.renewal();
    if (renewal == nullptr) return;
    if (!renewal->ok()) {
      status_ = *renewal;
      driver.release({0});
      return end(Result::kFailed);
    }
  } else if (!waited_) {
    gateway_.record_round(Loop::time_us() - begun_);
  }
  if (!lasts()) return renew();
  token_ = driver.token();
  owner_ = driver.owner();
  valid_until_ = driver.valid_until();
  if (wish_.mode == client::LockMode::kExclusive)
    gateway_.own().put({wish_.key, wish_.value, owner_, token_, wish_.ttl, valid_until_}, Loop::now());
  driver.leave();
  end(Result::kHeld);
}

// Whether the hold lasts for as long as the client may rely on it from the answer on.
bool Acquiring::lasts() const {
  const TimeMs until = client::saturating_add(Loop::now(), wish_.ttl.value_or(DurationMs{0}));
  return lock_->driver->valid_until() >= until;
}

// The acquisition, or the last renewal, took longer than usual.
void Acquiring::renew() {
  const DurationMs took = client::ms_of(Loop::time_us() - begun_);
  const bool known = renewing_ || !waited_;  // else it includes the wait
  const DurationMs round{2 + 2 * (known ? took.count : gateway_.recent_round().count)};
  renewing_ = true;
  begun_ = Loop::time_us();
  lock_->driver->renew(server_ttl(gateway_, wish_.ttl, round), true);
}

void Acquiring::end(Result result) {
  const auto self = shared_from_this();
  if (lock_ != nullptr) lock_->changed = nullptr;
  lock_.reset();
  if (const auto done = std::exchange(done_, nullptr)) done(result);
}

}  // namespace holdfast::proxy
