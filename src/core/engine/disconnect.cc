// The steps of a disconnect.
#include "core/engine/disconnect.h"

#include <utility>

#include "core/base/deferred_free.h"
#include "core/events/invalidate.h"
#include "core/events/monitor.h"
#include "core/events/publish.h"
#include "core/lock/sessions.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/history.h"
#include "core/state/memory_use.h"
#include "core/state/watches.h"

namespace holdfast {

namespace {

// Entries of each kind that one step removes. A step takes about 0.1 ms.
constexpr size_t kStepEntries = 25;

// Runs one step. Returns true if it was the last; the connection is then destroyed.
bool leave_some(Context& ctx, Conn& c) {
  cancel_waits(ctx, c, WaitEnd::kDisconnected, kStepEntries);
  unsubscribe_all(ctx, c, kStepEntries);
  ctx.s.watches.clear(c, kStepEntries);
  if (!c.waiters.empty() || c.subscriptions() > 0 || !c.watched.empty()) return false;
  end_transaction(ctx.s.deferred_free, std::move(c.transaction));
  c.chunk_state.reset();
  ctx.s.deferred_free.take(c.chunks.memory());
  ctx.s.deferred_free.take(c.out);
  for (const std::string* text : {&c.name, &c.lib_name, &c.lib_version}) {
    ctx.s.memory.text_bytes -= text->size();
  }
  ctx.s.memory.buffer_bytes -= c.unparsed_bytes;
  if (c.tickets != nullptr) ctx.s.timers.cancel(c.tickets.get());
  const ConnId id = c.id;
  const uint32_t session = c.session;
  absl::btree_set<HoldName> holds = std::move(c.session_holds);
  ctx.s.conns.close(id);  // first, so that nothing is written to it
  end_session(ctx, id, session, std::move(holds));
  return true;
}

}  // namespace

void begin_disconnect(Context& ctx, Conn& c) {
  c.leaving = c.closing = true;
  c.dirty = true;  // so that the shell does not get it in Effects::dirty
  c.blocked_on = nullptr;
  if (ctx.s.config.remote.drop) ctx.s.config.remote.drop(c.id);
  ctx.s.deferred_free.take(c.postponed.memory());
  c.postponed.clear();
  stop_monitoring(ctx, c);
  stop_tracking(ctx, c);
  const ConnId id = c.id;
  if (leave_some(ctx, c)) return;
  while (!resume_disconnect(ctx)) {  // one at a time
  }
  ctx.s.leaving = id;
}

bool resume_disconnect(Context& ctx) {
  if (!ctx.s.leaving) return true;
  if (!leave_some(ctx, ctx.s.conns.at(*ctx.s.leaving))) return false;
  ctx.s.leaving.reset();
  return true;
}

}  // namespace holdfast
