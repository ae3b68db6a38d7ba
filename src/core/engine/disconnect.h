// A connection goes: what it has in queues and indexes is taken out. Somebody may have a hundred thousand
// waits, watches and subscriptions, and nobody is to wait for their end; so a large one goes in steps.
// Meanwhile it stands in the table as Conn::leaving: nothing is granted or written to it.
#pragma once

#include "core/state/conn.h"

namespace holdfast {

struct Turn;

// The first step, and for most the last. Its SESSION holds end when the rest is done.
void leave(Turn& t, Conn& c);
// A step of the large one that is leaving. Whether there is none, or it is gone now.
bool go_on_leaving(Turn& t);

}  // namespace holdfast
