// Runs a command, and records the call: MONITOR, SLOWLOG, times, counts, and the reads for CLIENT TRACKING.
#pragma once

#include "core/state/request.h"

namespace holdfast {

// Runs a request whose command is resolved. Not for a request that a transaction must queue.
void run_command(Request& r);
// Runs a later chunk of a chunked request. Memory and disk must still permit it. It belongs to the same
// call.
void continue_command(Request& r);

}  // namespace holdfast
