// The steps of leaving.
#include "core/leave.h"

#include <utility>

#include "core/locks.h"
#include "core/monitor.h"

namespace holdfast {

namespace {

// What one step may take of each kind: about 0.1 ms each.
constexpr size_t kStepEntries = 200;
constexpr size_t kStepBytes = size_t{1} << 20U;
constexpr size_t kMostLeavers = 1;  // each may still have as much unread as a client may

// Whether all is done: then the connection is no more.
bool leave_some(Turn& t, Conn& c) {
  cancel_waits(t, c, kStepEntries);
  unsubscribe_all(t, c, kStepEntries);
  t.s.watches.clear(c, kStepEntries);
  if (!c.waiters.empty() || c.subscriptions() > 0 || !c.watched.empty()) return false;
  if (c.transaction != nullptr && !c.transaction->requests.memory().release_some(kStepBytes)) return false;
  if (!c.out.release_some(kStepBytes) || !c.later.release_some(kStepBytes)) return false;
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
  c.postponed.clear();
  stop_monitoring(t, c);
  stop_tracking(t, c);
  const ConnId id = c.id;
  if (leave_some(t, c)) return;
  t.s.leaving.push_back(id);
  if (t.s.leaving.size() > kMostLeavers) {  // they come faster than steps take them apart
    while (!go_on_leaving(t)) {
    }
  }
}

bool go_on_leaving(Turn& t) {
  if (t.s.leaving.empty()) return true;
  if (!leave_some(t, t.s.conns.at(t.s.leaving.front()))) return false;
  t.s.leaving.pop_front();
  return true;
}

}  // namespace holdfast
