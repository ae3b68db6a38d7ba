// The state of an engine in figures, for the shell. Nothing here walks keys, waiters or connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/duration_histogram.h"
#include "core/base/types.h"
#include "core/state/lock_count.h"

namespace holdfast {

class Engine;

struct EngineFigures {
  LockCount locks;
  size_t waiters = 0;
  DurationMs oldest_wait;  // 0: there is no waiter
  size_t longest_queue = 0;
  uint64_t grants = 0;  // since the start
  uint64_t queued_grants = 0;
  // How many waits of all modes had a duration in each bucket of DurationHistogram.
  std::array<uint64_t, DurationHistogram::kBounds + 1> waits{};
  size_t clients = 0;
};
EngineFigures figures_of(const Engine& engine, TimeMs now);

// The memory in use, as far as the engine counts it.
uint64_t used_memory_bytes(const Engine& engine);
// The requests since the start that got -OOM.
uint64_t rejected_for_memory(const Engine& engine);

}  // namespace holdfast
