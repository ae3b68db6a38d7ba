// Reads counters.
#include "core/engine/figures.h"

#include "core/command/command_log.h"
#include "core/engine/engine.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"
#include "core/state/wait_queue.h"

namespace holdfast {

EngineFigures figures_of(const Engine& engine, TimeMs now) {
  const EngineState& s = engine.state();
  EngineFigures figures;
  figures.locks = count_locks(s);
  figures.waiters = s.queues.waiting();
  figures.oldest_wait = oldest_wait(s, now);
  figures.longest_queue = s.queues.longest();
  figures.grants = s.stats.locks.grants.sum();
  figures.queued_grants = s.stats.locks.queued_grants.sum();
  for (const LockMode mode : {LockMode::kExclusiveMode, LockMode::kSharedMode, LockMode::kSemaphoreMode}) {
    const DurationHistogram times = s.stats.locks.wait_times(mode);
    for (size_t n = 0; n < figures.waits.size(); ++n) figures.waits[n] += times.in_bucket(n);
  }
  figures.clients = s.conns.size();
  return figures;
}

uint64_t used_memory_bytes(const Engine& engine) { return used_memory_bytes(engine.state()); }

uint64_t rejected_for_memory(const Engine& engine) {
  const auto& errors = engine.state().log.errors();
  const auto found = errors.find("OOM");
  return found == errors.end() ? 0 : found->second;
}

}  // namespace holdfast
