// The end of a child process that plays a run.
#pragma once

#include <unistd.h>

extern "C" void __gcov_dump() __attribute__((weak));  // only `make sim-coverage` has it

namespace holdfast::simulation {

// Ends the process at once, without destructors. Counters of coverage, if there are any, go to the disk.
[[noreturn]] inline void end_child(int status) {
  if (&__gcov_dump != nullptr) __gcov_dump();
  _exit(status);
}

}  // namespace holdfast::simulation
