// The seeds of a simulation that runs as a test: from environment variables.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace holdfast::simulation {

inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

// Calls check(seed, steps) for each seed, until it has returned false three times. HOLDFAST_SIM_RUNS and
// HOLDFAST_SIM_STEPS set the amount, HOLDFAST_SEED the first seed. HOLDFAST_SIM_SEED sets it too, with one
// run if the number of runs is not given.
template <typename Check>
void check_seeds(const char* name, uint64_t usual_runs, Check check) {
  const bool one = std::getenv("HOLDFAST_SIM_SEED") != nullptr;
  const uint64_t first = from_environment("HOLDFAST_SIM_SEED", from_environment("HOLDFAST_SEED", 1));
  const uint64_t runs = from_environment("HOLDFAST_SIM_RUNS", one ? 1 : usual_runs);
  const uint64_t steps = from_environment("HOLDFAST_SIM_STEPS", 300);
  std::cout << name << ": seeds " << first << " to " << first + runs - 1 << ", " << steps
            << " steps each\n";
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + runs && failed < 3; ++seed) {
    if (!check(seed, steps)) ++failed;
  }
  CHECK(failed == 0);
}

}  // namespace holdfast::simulation
