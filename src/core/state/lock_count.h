// What is held and awaited at present, from counters: none of these functions walks keys or waiters.
#pragma once

#include <cstdint>

#include "core/base/types.h"

namespace holdfast {

struct EngineState;

// Held keys by mode, as LOCKS LIST shows them: each string is an exclusive lock.
struct LockCount {
  uint64_t exclusive = 0;
  uint64_t shared = 0;
  uint64_t semaphores = 0;
};
LockCount count_locks(const EngineState& s);

// How long the oldest waiter has waited; 0 if there is none.
DurationMs oldest_wait(const EngineState& s, TimeMs now);

}  // namespace holdfast
