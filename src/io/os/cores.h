// The cores that this process may use, and the other threads that want them.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast {

struct Cores {
  uint64_t online = 1;            // of the machine
  uint64_t usable = 1;            // at most `online`: the CPU quota of the process's control groups
  uint64_t runnable_threads = 1;  // of the machine: those that run, and those that wait for a core
};

// Takes about 50 us. `root` is the folder that has /proc and /sys; a test can have its own.
Cores read_cores(const std::string& root = "");

// Lets the threads run that wait for the core of this thread. Returns for how many nanoseconds they ran; 0
// if there were none.
uint64_t let_others_run();

}  // namespace holdfast
