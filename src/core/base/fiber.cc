// Switches between stacks. AddressSanitizer needs a notice of each switch, or it takes one stack for an
// overflow of the other.
#include "core/base/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cassert>
#include <cstddef>
#include <utility>

#if defined(HOLDFAST_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace holdfast {

namespace {

namespace ctx = boost::context;

// Only touched pages take memory. Lua nests up to 200 calls of C functions, some with buffers of 8 KiB.
constexpr size_t kStackBytes = size_t{32} << 20U;

}  // namespace

struct Fiber::Impl {
  ctx::fiber other;  // the side that does not run now
  std::function<void()> task;
  bool ended = true;
  bool quit = false;
#if defined(HOLDFAST_ASAN)
  const void* stack = nullptr;  // of the fiber, for its first start; later of the side that was left
  size_t stack_bytes = 0;
#endif

  void enter();
  void leave(bool final);
  void loop();
};

#if defined(HOLDFAST_ASAN)
void Fiber::Impl::enter() {
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack, stack_bytes);
  other = std::move(other).resume();
  __sanitizer_finish_switch_fiber(fake, &stack, &stack_bytes);
}
#else
void Fiber::Impl::enter() { other = std::move(other).resume(); }
#endif

// Switches from the fiber to the main stack; returns when the fiber is entered again.
void Fiber::Impl::leave(bool final) {
#if defined(HOLDFAST_ASAN)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(final ? nullptr : &fake, stack, stack_bytes);
  if (final) return;
  other = std::move(other).resume();
  __sanitizer_finish_switch_fiber(fake, &stack, &stack_bytes);
#else
  if (!final) other = std::move(other).resume();
#endif
}

void Fiber::Impl::loop() {
  while (!quit) {
    task();
    ended = true;
    leave(false);
  }
  leave(true);
}

Fiber::Fiber(std::function<void()> task) : impl_(std::make_unique<Impl>()) {
  impl_->task = std::move(task);
  ctx::protected_fixedsize_stack allocator(kStackBytes);
  ctx::stack_context stack = allocator.allocate();
#if defined(HOLDFAST_ASAN)
  impl_->stack = static_cast<char*>(stack.sp) - stack.size;
  impl_->stack_bytes = stack.size;
#endif
  Impl* impl = impl_.get();
  impl->other = ctx::fiber(std::allocator_arg, ctx::preallocated(stack.sp, stack.size, stack), allocator,
                           [impl](ctx::fiber&& main) {
#if defined(HOLDFAST_ASAN)
                             __sanitizer_finish_switch_fiber(nullptr, &impl->stack, &impl->stack_bytes);
#endif
                             impl->other = std::move(main);
                             impl->loop();
                             return std::move(impl->other);
                           });
}

// A stack is freed only after its function has returned, so the loop must end first.
Fiber::~Fiber() {
  assert(!under_way());
  impl_->quit = true;
  impl_->enter();
}

bool Fiber::start() {
  assert(!under_way());
  impl_->ended = false;
  impl_->enter();
  return impl_->ended;
}

bool Fiber::resume() {
  assert(under_way());
  impl_->enter();
  return impl_->ended;
}

bool Fiber::under_way() const { return !impl_->ended; }

void Fiber::pause() { impl_->leave(false); }

}  // namespace holdfast
