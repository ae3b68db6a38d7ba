// The checks of the options, the stop token, and the state of an awaitable.
#include "client/api/acquisition.h"

#include <stdexcept>
#include <stop_token>
#include <utility>

#include "client/api/checks.h"
#include "client/api/client_core.h"
#include "client/api/hold_core.h"

namespace holdfast {

namespace {

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

void stop_later(const std::shared_ptr<ClientCore>& client, const std::weak_ptr<HoldCore>& acquisition) {
  client->post([acquisition] {
    if (const auto hold = acquisition.lock()) hold->stop();
  });
}

// Cancels an acquisition when its stop token says so. For the loop's thread; only the callback of the token
// runs on the thread that requests the stop. The callback ends with the result.
class StopListener {
 public:
  StopListener(std::shared_ptr<ClientCore> client, OnResult done)
      : client_(std::move(client)), done_(std::move(done)) {}

  void start(const std::shared_ptr<HoldCore>& hold, const std::stop_token& stop) {
    if (stop.stop_requested()) return hold->refuse_stopped();
    hold->start();
    if (!done_) return;
    callback_.emplace(stop, [client = client_, acquisition = std::weak_ptr(hold)] {
      if (!client->is_forked()) stop_later(client, acquisition);
    });
  }

  void end(Result<Hold> result) {
    callback_.reset();
    std::exchange(done_, nullptr)(std::move(result));
  }

 private:
  const std::shared_ptr<ClientCore> client_;
  OnResult done_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace

std::weak_ptr<HoldCore> acquire(const std::shared_ptr<ClientCore>& client, std::string_view key,
                                WaitLimit wait, const LockOptions& options, OnResult done) {
  client->forbid_after_fork();
  check(options);
  if (!done) throw std::invalid_argument("an acquisition needs a function for `done`");
  const auto begin = [&](OnResult then) {
    return std::make_shared<HoldCore>(client, std::string(key), wait, options, std::move(then));
  };
  if (!options.stop.stop_possible()) {
    const auto hold = begin(std::move(done));
    if (!client->post([hold] { hold->start(); })) hold->refuse();
    return hold;
  }
  const auto listener = std::make_shared<StopListener>(client, std::move(done));
  const auto hold = begin([listener](Result<Hold> result) { listener->end(std::move(result)); });
  if (!client->post([hold, listener, stop = options.stop] { listener->start(hold, stop); })) hold->refuse();
  return hold;
}

std::future<Result<Hold>> acquire_future(const std::shared_ptr<ClientCore>& client, std::string_view key,
                                         WaitLimit wait, const LockOptions& options) {
  const auto promise = std::make_shared<std::promise<Result<Hold>>>();
  acquire(client, key, wait, options,
          [promise](Result<Hold> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

Awaiting::Awaiting(std::shared_ptr<ClientCore> client, std::string_view key, WaitLimit wait,
                   LockOptions options)
    : client_(std::move(client)), key_(key), wait_(wait), options_(std::move(options)) {
  client_->forbid_after_fork();
  check(options_);
}

void Awaiting::begin(void (*resume_frame)(void* frame), void* frame) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kNew) throw std::logic_error("this holdfast::LockAwaitable was awaited before");
    state_ = State::kWaiting;
    resume_ = resume_frame;
    frame_ = frame;
  }
  const auto self = shared_from_this();  // the coroutine may end, and its awaitable with it, meanwhile
  auto hold = acquire(client_, key_, wait_, options_,
                      [self](Result<Hold> result) { self->end(std::move(result)); });
  const std::lock_guard lock(mutex_);
  hold_ = std::move(hold);
  if (state_ == State::kAbandoned) stop_later(client_, hold_);  // meanwhile, on another thread
}

void Awaiting::end(Result<Hold> result) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kWaiting) return;  // `result` releases the lock
    result_ = std::move(result);
    state_ = State::kDone;
  }
  client_->resume([self = shared_from_this()] { self->resume(); });
}

void Awaiting::resume() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kDone) return;
  }
  resume_(frame_);
}

Result<Hold> Awaiting::take() {
  const std::lock_guard lock(mutex_);
  return std::move(result_.value());
}

void Awaiting::abandon() {
  if (client_->is_forked()) return;
  std::optional<Result<Hold>> unwanted;  // is destroyed after the mutex is free
  const std::lock_guard lock(mutex_);
  unwanted.swap(result_);
  if (std::exchange(state_, State::kAbandoned) == State::kWaiting) stop_later(client_, hold_);
}

}  // namespace holdfast
