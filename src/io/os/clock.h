// Reads the two clocks of the process. All other code gets the time as an argument.
#pragma once

#include "core/base/types.h"

namespace holdfast {

// The engine's clock runs through suspends (CLOCK_BOOTTIME): a lock's TTL continues while a laptop sleeps.
Now read_clock();
using ReadClock = Now (*)();

// Microseconds since an arbitrary start, to measure how long work takes.
int64_t read_stopwatch_us();

}  // namespace holdfast
