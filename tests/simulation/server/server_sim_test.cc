// A short run of the simulation of the whole server. HOLDFAST_SIM_SERVER_STEPS sets its length, and
// HOLDFAST_SIM_SERVER_SEED its first seed.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "server_runs.h"

namespace holdfast::simulation {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

}  // namespace

TEST_CASE("server simulation: no stop, crash or fault of the disk breaks what the documentation promises") {
  const uint64_t steps = from_environment("HOLDFAST_SIM_SERVER_STEPS", 20000);
  uint64_t seed = from_environment("HOLDFAST_SIM_SERVER_SEED", 1);
  constexpr uint64_t kStepsOfRun = 500;
  for (uint64_t done = 0; done < steps; done += kStepsOfRun, ++seed) {
    const RunResult result = run_server_seed(seed, kStepsOfRun);
    CHECK_MESSAGE(result.fault.empty(), "seed ", seed, " fails: ", result.fault, "\n", result.script);
    if (!result.fault.empty()) return;
  }
}

}  // namespace holdfast::simulation
