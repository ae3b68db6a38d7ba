// Reads the history.
#include "core/engine/lock_events.h"

#include "core/engine/engine.h"
#include "core/lock/holds.h"
#include "core/state/context.h"
#include "core/state/history.h"

namespace holdfast {

uint64_t newest_lock_event(const Engine& engine) { return engine.state().history.newest(); }
uint64_t oldest_lock_event(const Engine& engine) { return engine.state().history.oldest(); }

ShownLockEvent read_lock_event(const Engine& engine, uint64_t serial) {
  const EngineState& s = engine.state();
  const LockEventView e = s.history.at(serial);
  ShownLockEvent shown;
  shown.serial = e.serial;
  shown.name = event_name(e.event);
  shown.at_ms = e.at_us / 1000;
  shown.db = s.db_name[e.db];
  shown.key = e.key;
  shown.owner = e.owner;
  shown.note = e.note;
  shown.token = e.token;
  shown.waited = e.waited();
  shown.held = e.held();
  shown.address = origin_of(s, e.conn).addr;
  return shown;
}

}  // namespace holdfast
