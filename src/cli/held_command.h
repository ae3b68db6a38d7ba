// A command under a hold: what `run` and `elect` share.
#pragma once

#include "cli/child.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "holdfast/client.h"

namespace holdfast {

// So long before the validity's end a command that must end before the lock is told to: its grace, and what
// is taken off as nothing is exact.
milliseconds warn_before_for(const RunOptions& run);

// Starts the command, which finds the hold in its environment, and returns when it has ended. `how` says
// when it must; its `grace`, `may_go_on` and `time_left` are set here. The hold is not given back: only now
// may it be.
CommandEnd run_command(const Signals& signals, const RunOptions& run, const Hold& hold, Supervision how);

}  // namespace holdfast
