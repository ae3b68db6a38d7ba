// Counts the memory in use, and frees memory that is no longer needed.
#include "core/state/memory_use.h"

#include <algorithm>

#include "core/base/deferred_free.h"
#include "core/base/page_pool.h"
#include "core/keyspace/keyspace.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/contended_keys.h"
#include "core/state/context.h"
#include "core/state/empty_places.h"
#include "core/state/history.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/pubsub.h"
#include "core/state/tickets.h"
#include "core/state/tracking.h"
#include "core/state/wait_queue.h"
#include "core/state/watches.h"

namespace holdfast {

uint64_t used_memory_bytes(const EngineState& s) {
  // Estimated overhead of an object in indexes and in the allocator.
  constexpr uint64_t kIndexBytes = 256;
  uint64_t bytes = s.memory.startup_bytes + s.queues.waiting() * (sizeof(Waiter) + kIndexBytes) +
                   s.queues.ticketed() * (sizeof(Ticket) + kIndexBytes) +
                   s.queues.pop_places() * (sizeof(PopWaiter) + kIndexBytes) +
                   s.queues.queues() * (sizeof(WaitQueue) + kIndexBytes) +
                   s.leases.size() * (sizeof(LiveLease) + kIndexBytes) +
                   s.leases.remembered() * (sizeof(LeaseOutcome) + kIndexBytes) +
                   s.attachments.size() * 2 * sizeof(Attachment) +
                   s.conns.size() * (sizeof(Conn) + kIndexBytes) + s.conns.closed().bytes();
  bytes += s.holders.note_bytes + s.attachments.note_bytes + s.queues.note_bytes();
  bytes += s.queues.key_bytes() + s.leases.id_bytes() + s.pubsub.bytes + s.watches.bytes() +
           s.tracking.bytes() + s.memory.buffer_bytes + s.memory.text_bytes + s.memory.snapshot_bytes +
           s.memory.partial_bytes + s.pages.unneeded() * PagePool::kPageBytes + s.deferred_free.bytes() +
           s.removed.bytes() + s.history.bytes() + s.contended.bytes() + s.places.bytes() +
           s.tickets.relay.bytes() + s.journal.out.size();
  for (const auto& db : s.dbs) bytes += db->used_bytes();
  for (const auto& db : s.flushed) bytes += db->waiting_bytes();
  return bytes;
}

uint64_t surplus_bytes(const EngineState& s, uint64_t more_bytes) {
  const uint64_t limit = s.config.limits.memory_bytes;
  if (limit == 0) return 0;
  const uint64_t most = limit - limit / 16;
  return std::max(used_memory_bytes(s) + more_bytes, most) - most;
}

uint64_t record_memory_use(Context& ctx) {
  MemoryUse& memory = ctx.s.memory;
  const uint64_t bytes = used_memory_bytes(ctx.s);
  memory.peak_bytes = std::max(memory.peak_bytes, bytes);
  memory.looked_at = ctx.now.mono;
  return bytes;
}

// The first flushed keyspace that no snapshot needs any more.
static auto next_flushed(const EngineState& s) {
  return std::ranges::find_if(s.flushed, [](const auto& keys) { return !keys->saving(); });
}

bool has_flushed_to_free(const EngineState& s) { return next_flushed(s) != s.flushed.end(); }

bool free_flushed(EngineState& s) {
  const auto flushed = next_flushed(s);
  if (flushed == s.flushed.end()) return false;
  if ((*flushed)->dismantle_step()) s.flushed.erase(flushed);
  return true;
}

bool free_some(EngineState& s) {
  const bool has_old = !s.deferred_free.empty();
  s.deferred_free.release_some();
  const bool has_body = s.removed.free_some();
  const bool has_page = s.pages.free_unneeded();
  return free_flushed(s) || has_old || has_body || has_page;
}

}  // namespace holdfast
