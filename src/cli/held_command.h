// Runs a command while a lock is held, for `run` and `elect`.
#pragma once

#include "cli/child.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "holdfast/client.h"

namespace holdfast {

// Returns how long before the end of the lock's validity a command gets TERM, if it must end before the
// lock: its grace plus 1/20 of the TTL as a safety margin.
milliseconds warn_before_for(const RunOptions& run);

// Starts the command with the hold in its environment, and returns after it ended. `how` says when the
// command must end; this function sets its `grace`, `may_resume` and `time_left`. It does not release the
// hold: the caller may do so after this function returns, not earlier.
CommandEnd run_command(const Signals& signals, const RunOptions& run, const Hold& hold, Supervision how);

}  // namespace holdfast
