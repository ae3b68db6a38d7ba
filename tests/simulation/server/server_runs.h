// Runs of the simulation: each in a process of its own, so that an assertion that fails is a fault like
// others. A run that fails is shortened to the steps that it needs.
#pragma once

#include <cstdint>
#include <string>

#include "server_world.h"

namespace holdfast::simulation {

struct RunResult {
  std::string fault;   // empty: none
  std::string script;  // of a run that failed: the fewest steps found
  Counts counts;
};

// Plays so many random steps.
RunResult run_server_seed(uint64_t seed, uint64_t steps);
// Plays a script as it was printed. `seed` decides how long operations on the disk take.
RunResult play_server_script(uint64_t seed, const std::string& script);

}  // namespace holdfast::simulation
