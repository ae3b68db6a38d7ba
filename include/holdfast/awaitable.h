// The awaitables of Client: co_await client.co_lock("printer").
#pragma once

#include <coroutine>
#include <memory>
#include <string_view>

#include "holdfast/hold.h"
#include "holdfast/result.h"

namespace holdfast {

class ClientCore;
class Awaiting;

// One acquisition, which begins when a coroutine awaits it; await each object once. The coroutine gets a
// Result<Hold>, and continues where ClientOptions::resume says. co_await throws std::logic_error in a child
// of fork(), and for the second co_await of an object.
//
// If the coroutine is destroyed while it waits, the acquisition is cancelled, as by LockOptions::stop: it
// leaves neither wait nor hold. Destroy a waiting coroutine only on the thread on which it would continue:
// on any other thread it may be about to continue.
class [[nodiscard]] LockAwaitable {
 public:
  LockAwaitable(LockAwaitable&&) noexcept = default;
  LockAwaitable& operator=(LockAwaitable&&) = delete;
  ~LockAwaitable();

  bool await_ready() const noexcept { return false; }
  // Nothing here may touch this object after begin(): the coroutine may have ended already.
  void await_suspend(std::coroutine_handle<> waiting) {
    begin([](void* frame) { std::coroutine_handle<>::from_address(frame).resume(); }, waiting.address());
  }
  Result<Hold> await_resume() { return take(); }

 private:
  friend class Client;
  explicit LockAwaitable(std::shared_ptr<Awaiting> awaiting);
  void begin(void (*resume)(void* frame), void* frame);
  Result<Hold> take();

  std::shared_ptr<Awaiting> awaiting_;
};

}  // namespace holdfast
