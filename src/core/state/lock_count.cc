// Counts held keys.
#include "core/state/lock_count.h"

#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/state/context.h"
#include "core/state/wait_queue.h"

namespace holdfast {

LockCount count_locks(const EngineState& s) {
  LockCount count{0, s.holders.shared, s.holders.semaphores};
  for (const auto& db : s.dbs) count.exclusive += db->strings();
  return count;
}

DurationMs oldest_wait(const EngineState& s, TimeMs now) {
  const Waiter* const oldest = s.queues.oldest();
  return oldest == nullptr ? DurationMs{0} : now - oldest->since;
}

}  // namespace holdfast
