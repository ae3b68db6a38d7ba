// The reports of a verb that waits for a lock: the holders, and the servers that cannot be used.
#pragma once

#include <functional>
#include <string>

#include "cli/show.h"
#include "holdfast/client.h"

namespace holdfast {

// Gets one report. `event` is "waiting" or "unreachable". `facts` is for programs; `text` has the same
// facts for people.
using ReportWait =
    std::function<void(const std::string& event, const Json& facts, const std::string& text)>;

// Sets the callbacks in `options` that report a wait. The client's thread calls `callback`, which must not
// block.
void report_waits(LockOptions& options, ReportWait callback);

}  // namespace holdfast
