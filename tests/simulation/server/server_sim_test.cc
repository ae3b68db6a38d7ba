// A short run of the simulation of the whole server. HOLDFAST_SIM_SERVER_STEPS sets its length, and
// HOLDFAST_SIM_SERVER_SEED, or else HOLDFAST_SEED, its first seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "server_runs.h"
#include "simulation/seeds.h"

namespace holdfast::simulation {

TEST_CASE("server simulation: no stop, crash or fault of the disk breaks what the documentation promises") {
  const uint64_t steps = from_environment("HOLDFAST_SIM_SERVER_STEPS", 10000);
  uint64_t seed = from_environment("HOLDFAST_SIM_SERVER_SEED", from_environment("HOLDFAST_SEED", 1));
  constexpr uint64_t kStepsOfRun = 500;
  for (uint64_t done = 0; done < steps; done += kStepsOfRun, ++seed) {
    const RunResult result = run_server_seed(seed, kStepsOfRun);
    CHECK_MESSAGE(result.fault.empty(), "seed ", seed, " fails: ", result.fault, "\n", result.script);
    if (!result.fault.empty()) return;
  }
}

// Each script shows a fault of an earlier version. The seeds vary how long operations on the disk take.
TEST_CASE("server simulation: the kept scripts run without a fault") {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator("tests/simulation/server/scripts"))
    files.push_back(file.path());
  std::ranges::sort(files);
  REQUIRE_FALSE(files.empty());
  constexpr uint64_t kSeeds = 4;
  for (const std::filesystem::path& path : files) {
    std::ifstream in(path);
    const std::string script(std::istreambuf_iterator<char>(in), {});
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const RunResult result = play_server_script(seed, script);
      CHECK_MESSAGE(result.fault.empty(), path.string(), " with seed ", seed, ": ", result.fault);
      CHECK(result.counts.steps > 0);
    }
  }
}

}  // namespace holdfast::simulation
