// The places of requests that pop, and their service; see pop_waiting.h.
#include "core/values/pop_waiting.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/command/command_log.h"
#include "core/events/invalidate.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/effects.h"
#include "core/state/output.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Returns the queue of a key that need not exist: then a placeholder takes its place in the keyspace.
WaitQueue* queue_for(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = find_any(ctx, db, key);
  if (!f) f = ctx.keys(db).find_or_insert(key, EntryType::kNone, {}, ctx.now.mono).first;
  return queue_of(ctx, {db, f}, key);
}

// A request may name a key twice.
size_t different(std::span<const std::string_view> keys) {
  if (keys.size() == 1) return 1;
  return absl::flat_hash_set<std::string_view>(keys.begin(), keys.end()).size();
}

// Pops for a request. The changes are those of its own connection, for example for client caches.
void serve_pop(Context& ctx, PopWaiter* waiting, const Key& key) {
  const std::unique_ptr<PopWaiter> w = remove_pop_wait(ctx, waiting);
  Conn& c = ctx.s.conns.at(w->conn);
  Context own = ctx;
  own.actor = c.id;
  mark_dirty(own, c);
  const size_t answered = c.out.size();
  const bool muted = is_muted(c);
  Request r{own, c, *w->command, {}, Reply(c.out, c.protocol)};
  c.running = true;
  w->pop(r, *w, key);
  const std::string_view reply = c.out.view().substr(answered);
  if (reply.starts_with('-')) ctx.s.log.record_failure(*w->command, reply, false);
  if (muted) c.out.truncate(answered);
  send_own_invalidations(own);
  flush_later(own, c);
}

}  // namespace

Admission wait_for_elements(Context& ctx, Conn& c, std::unique_ptr<PopWaiter> owned,
                            std::span<const std::string_view> keys, DurationMs timeout) {
  WaitQueues& queues = ctx.s.queues;
  const Limits& limits = ctx.s.config.limits;
  if (queues.places() + different(keys) > limits.waiters) return Admission::kTooMany;
  PopWaiter* w = owned.release();
  w->conn = c.id;
  w->since = ctx.now.mono;
  w->serve = serve_pop;
  for (const std::string_view bytes : keys) {
    WaitQueue* q = queue_for(ctx, c.db, ctx.keys(c.db).key(bytes));
    // As in wait_for(): its service at the end of the engine call removes a queue that stays empty.
    queues.mark_ready(q);
    const auto& pops = q->pops(w->type);
    if (!pops.empty() && pops.back() == w) continue;  // the request names the key twice
    queues.enqueue(q, w);
    w->bytes += bytes_of_name(bytes);
    if (q->places() <= limits.waiters_per_key) continue;
    remove_pop_wait(ctx, w);
    return Admission::kTooManyOnKey;
  }
  join_connection(ctx, c, w, timeout, true);
  return Admission::kWaiting;
}

void swap_pop_waits(Context& ctx, DbIndex a, DbIndex b) {
  std::vector<std::string> keys;
  ctx.s.queues.for_each([&](const WaitQueue& q) {
    if ((q.db == a || q.db == b) && q.has_pops()) keys.push_back(q.key_bytes);
  });
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& bytes : keys) {
    const Key key = ctx.keys(a).key(bytes);  // all databases have the same seed
    WaitQueue* of_a = queue_for(ctx, a, key);
    WaitQueue* of_b = queue_for(ctx, b, key);
    WaitQueues::swap_pops(of_a, of_b);
    ctx.s.queues.mark_ready(of_a);
    ctx.s.queues.mark_ready(of_b);
  }
}

}  // namespace holdfast
