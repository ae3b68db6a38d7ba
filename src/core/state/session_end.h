// Sessions that have ended, and whose holds end after the session grace.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <memory>

#include "core/base/timers.h"
#include "core/state/conn.h"

namespace holdfast {

// SESSION holds of a connection that disconnected, during the session grace.
struct SessionEnd : Timer {
  SessionEnd() : Timer(TimerKind::kSessionEnd) {}
  ConnId conn;
  uint32_t number = 0;  // number of its session: see Conn::session
  absl::btree_set<HoldName> holds;
};

class SessionEnds : public absl::flat_hash_map<SessionEnd*, std::unique_ptr<SessionEnd>> {};

}  // namespace holdfast
