// Random schedules of clients on several servers. HOLDFAST_SCHEDULES is the number of schedules,
// HOLDFAST_SEED the first seed. HOLDFAST_SEED=n HOLDFAST_SCHEDULES=1 runs a single schedule.
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "redlock_world.h"

namespace holdfast::simulation {

namespace {

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Returns the first seed at which the judge finds a fault; `last` if there is none.
uint64_t first_fault(Flaw flaw, uint64_t last, std::string& wrong, RedlockTally& tally,
                     Story story = Story::kChance) {
  for (uint64_t seed = 0; seed < last; ++seed) {
    wrong = RedlockWorld(seed, flaw, tally, story).run();
    if (!wrong.empty()) return seed;
  }
  return last;
}

// Runs a tenth of the schedules, since each of them is longer.
void check_restarts(Story story, const char* what) {
  const uint64_t first = number_from("HOLDFAST_SEED", 1);
  const uint64_t schedules = number_from("HOLDFAST_SCHEDULES", 1000) / 10 + 1;
  RedlockTally tally;
  int faults = 0;
  for (uint64_t seed = first; seed < first + schedules && faults < 3; ++seed) {
    const std::string wrong = RedlockWorld(seed, Flaw::kNone, tally, story).run();
    if (wrong.empty()) continue;
    ++faults;
    std::cout << "redlock simulation, " << what << ": seed " << seed << ": " << wrong << "\n";
  }
  std::cout << "redlock simulation, " << what << ": seeds " << first << " to " << first + schedules - 1
            << ": " << tally.acquired << " acquired, " << tally.renewed << " renewals, " << tally.healed
            << " LOCKs to heal, " << tally.lost << " lost, " << tally.steps << " steps\n";
  CHECK(faults == 0);
  if (schedules >= 100) CHECK(tally.healed > schedules);
}

}  // namespace

TEST_CASE("redlock simulation: tokens are unique and grow, at most one client holds, every lock ends") {
  const uint64_t first = number_from("HOLDFAST_SEED", 1);
  const uint64_t schedules = number_from("HOLDFAST_SCHEDULES", 1000);
  RedlockTally tally;
  int faults = 0;
  for (uint64_t seed = first; seed < first + schedules && faults < 3; ++seed) {
    const std::string wrong = RedlockWorld(seed, Flaw::kNone, tally).run();
    if (wrong.empty()) continue;
    ++faults;
    std::cout << "redlock simulation: seed " << seed << ": " << wrong << "\n";
  }
  std::cout << "redlock simulation: seeds " << first << " to " << first + schedules - 1 << ": "
            << tally.acquired << " acquired, " << tally.fenced << " of them by FENCE, " << tally.renewed
            << " renewed, " << tally.lost << " lost, " << tally.failed << " not acquired, " << tally.steps
            << " steps\n";
  CHECK(faults == 0);
  if (schedules >= 1000) {  // enough schedules to reach the checked cases
    CHECK(tally.acquired > schedules);
    CHECK(tally.fenced > schedules / 10);
    CHECK(tally.renewed > schedules / 10);
  }
}

TEST_CASE(
    "redlock simulation: a hold survives servers that restart in turn, each down for longer than the ttl") {
  check_restarts(Story::kRestarts, "restarts");
}

TEST_CASE("redlock simulation: a hold survives servers that lose it in turn while a majority has it") {
  check_restarts(Story::kForgets, "servers that forget");
}

TEST_CASE("redlock simulation: the judge detects a hold that ends because healing is off") {
  for (const Story story : {Story::kRestarts, Story::kForgets}) {
    std::string wrong;
    RedlockTally tally;
    const uint64_t seed = first_fault(Flaw::kNoHealing, 100, wrong, tally, story);
    CHECK(seed < 100);
    MESSAGE("found by seed ", seed, ": ", wrong);
  }
}

TEST_CASE("redlock simulation: the judge detects that a crash resets one server's counter") {
  std::string wrong;
  RedlockTally tally;
  const uint64_t seed = first_fault(Flaw::kCounterReset, 3000, wrong, tally);
  CHECK(seed < 3000);
  CHECK(wrong.find("token") != std::string::npos);
  MESSAGE("found by seed ", seed);
}

TEST_CASE("redlock simulation: the judge detects clocks that differ by more than the drift") {
  std::string wrong;
  RedlockTally tally;
  const uint64_t seed = first_fault(Flaw::kClocksAstray, 3000, wrong, tally);
  CHECK(seed < 3000);
  CHECK(wrong.find("two hold") != std::string::npos);
  MESSAGE("found by seed ", seed);
}

}  // namespace holdfast::simulation
