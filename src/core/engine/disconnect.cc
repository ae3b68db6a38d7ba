// The steps of leaving.
#include "core/engine/disconnect.h"

#include <utility>

#include "core/events/invalidate.h"
#include "core/events/monitor.h"
#include "core/events/publish.h"
#include "core/lock/sessions.h"
#include "core/lock/waiting.h"

namespace holdfast {

namespace {

// What one step may take of each kind: about 0.1 ms.
constexpr size_t kStepEntries = 25;

// Whether all is done: then the connection is no more.
bool leave_some(Turn& t, Conn& c) {
  cancel_waits(t, c, kStepEntries);
  unsubscribe_all(t, c, kStepEntries);
  t.s.watches.clear(c, kStepEntries);
  if (!c.waiters.empty() || c.subscriptions() > 0 || !c.watched.empty()) return false;
  end_transaction(t.s, std::move(c.transaction));
  t.s.old_buffers.take(c.slices.memory());
  t.s.old_buffers.take(c.out);
  for (std::string* text : {&c.name, &c.lib_name, &c.lib_version}) set_text(t.s, *text, "");
  t.s.memory.buffer_bytes -= c.unparsed_bytes;
  const ConnId id = c.id;
  const uint32_t session = c.session;
  absl::btree_set<HoldName> holds = std::move(c.session_holds);
  t.s.conns.close(id);  // first, so that nothing is written to it
  end_session(t, id, session, std::move(holds));
  return true;
}

}  // namespace

void leave(Turn& t, Conn& c) {
  c.leaving = c.closing = true;
  c.dirty = true;  // so that it is not named to the shell any more
  c.blocked_on = nullptr;
  t.s.old_buffers.take(c.postponed.memory());
  c.postponed.clear();
  stop_monitoring(t, c);
  stop_tracking(t, c);
  const ConnId id = c.id;
  if (leave_some(t, c)) return;
  while (!go_on_leaving(t)) {  // one at a time
  }
  t.s.leaving = id;
}

bool go_on_leaving(Turn& t) {
  if (!t.s.leaving) return true;
  if (!leave_some(t, t.s.conns.at(*t.s.leaving))) return false;
  t.s.leaving.reset();
  return true;
}

}  // namespace holdfast
