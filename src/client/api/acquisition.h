// An acquisition from the call of a program to its result, in each of the four forms.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "client/api/wait_limit.h"
#include "holdfast/hold.h"
#include "holdfast/options.h"

namespace holdfast {

class ClientCore;
class HoldCore;

using OnResult = std::function<void(Result<Hold>)>;

// Begins to acquire. `done` gets the result: once, on the client's own thread; or on this thread before the
// function returns, if the client is closed. Throws std::invalid_argument if an option is out of range, and
// std::logic_error in a child of fork(). Returns the acquisition, which stop() of HoldCore cancels.
std::weak_ptr<HoldCore> acquire(const std::shared_ptr<ClientCore>& client, std::string_view key,
                                WaitLimit wait, const LockOptions& options, OnResult done);

std::future<Result<Hold>> acquire_future(const std::shared_ptr<ClientCore>& client, std::string_view key,
                                         WaitLimit wait, const LockOptions& options);

// The state of a LockAwaitable. The client's thread and the coroutine's share it.
class Awaiting : public std::enable_shared_from_this<Awaiting> {
 public:
  Awaiting(std::shared_ptr<ClientCore> client, std::string_view key, WaitLimit wait, LockOptions options);

  // Begins to acquire. `resume_frame(frame)` is called once, through ClientOptions::resume, unless
  // abandon() comes first. This may happen before begin() returns. Throws as acquire(), and for the second
  // call.
  void begin(void (*resume_frame)(void* frame), void* frame);
  Result<Hold> take();
  // The coroutine will not take the result, or has taken it.
  void abandon();

 private:
  enum class State : uint8_t { kNew, kWaiting, kDone, kAbandoned };

  void end(Result<Hold> result);
  void resume();

  const std::shared_ptr<ClientCore> client_;
  const std::string key_;
  const WaitLimit wait_;
  const LockOptions options_;
  std::mutex mutex_;  // guards the members below
  State state_ = State::kNew;
  void (*resume_)(void* frame) = nullptr;
  void* frame_ = nullptr;
  std::weak_ptr<HoldCore> hold_;
  std::optional<Result<Hold>> result_;
};

}  // namespace holdfast
