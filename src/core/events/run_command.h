// Runs a command, with what there is to know about the call: MONITOR, SLOWLOG, times, counts, and the reads
// that CLIENT TRACKING remembers.
#pragma once

#include "core/state/request.h"

namespace holdfast {

inline constexpr std::string_view kOomText = "OOM command not allowed when used memory > 'maxmemory'.";

// The command has been resolved. Not for what a transaction has to queue.
void run_command(Request& r);

}  // namespace holdfast
