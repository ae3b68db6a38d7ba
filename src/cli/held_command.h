// A command under a hold: what `run` and `elect` share.
#pragma once

#include "cli/child.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "holdfast/client.h"

namespace holdfast {

// Starts the command, which finds the hold in its environment, and returns when it has ended. `how` says
// when it must; its `grace` and `may_go_on` are set here. The hold is not given back: only now may it be.
CommandEnd run_command(const Signals& signals, const RunOptions& run, const Hold& hold, Supervision how);

}  // namespace holdfast
