// A connection goes: what it has in queues and indexes is taken out. Somebody may have a hundred thousand
// waits, watches and subscriptions, and nobody is to wait for their end; so a large one goes in steps.
// Meanwhile it stands in the table as Conn::leaving: nothing is granted or written to it.
#pragma once

#include "core/state/conn.h"

namespace holdfast {

struct Context;

// The first step, and for most the last. Its SESSION holds end when the rest is done.
void begin_disconnect(Context& ctx, Conn& c);
// A step of the large one that is leaving. Whether there is none, or it is gone now.
bool resume_disconnect(Context& ctx);

}  // namespace holdfast
