// Disconnect: removes a connection's entries from queues and indexes. A connection may have 100,000 waits,
// watches and subscriptions, and their removal must not delay other clients. So a large connection is
// removed in steps. Meanwhile it stays in the table with Conn::leaving set: nothing is granted or written
// to it.
#pragma once

#include "core/state/conn.h"

namespace holdfast {

struct Context;

// Runs the first step, which for most connections is the last. The SESSION holds end after the last step.
void begin_disconnect(Context& ctx, Conn& c);
// Runs one step of the large connection that is disconnecting. Returns true if there is none, or if this
// step was the last.
bool resume_disconnect(Context& ctx);

}  // namespace holdfast
