// Runs of random steps on the engine and on a plain model of it; tests/simulation/world.h describes the
// comparison. One seed decides a whole run. A run that fails is reduced to the necessary steps.
#include <doctest/doctest.h>

#include <iostream>

#include "apart.h"
#include "generator.h"
#include "seeds.h"
#include "shorten.h"
#include "step.h"
#include "world.h"

namespace holdfast::simulation {
namespace {

// Plays the steps. Returns the first fault; empty if there is none. Writes the transcript so far to
// `story`, unless it is null.
std::string play(const Profile& profile, const std::vector<Step>& steps, SharedText* story) {
  World world(profile);
  std::string transcript = transcript_head(profile);
  if (story != nullptr) world.record(&transcript);
  for (const Step& step : steps) {
    const std::string wrong = world.play(step);
    if (story != nullptr) story->replace(transcript + (wrong.empty() ? "" : "# wrong: " + wrong) + "\n");
    if (!wrong.empty()) return wrong;
    if (world.model().is_undetermined()) return "";
  }
  return "";
}

bool fails(const Profile& profile, const std::vector<Step>& steps) {
  return !succeeds_apart(true, [&] { return play(profile, steps, nullptr).empty(); });
}

// Plays one run. It writes each step to `trace` before it plays it.
bool run_seed(const Profile& profile, uint64_t steps, SharedText& trace, SharedText& report) {
  World world(profile);
  Generator generator(profile);
  for (uint64_t n = 0; n < steps; ++n) {
    const Step step = generator.next(world);
    trace.append(written(step));
    const std::string wrong = world.play(step);
    if (!wrong.empty()) report.append("step " + std::to_string(n) + ": " + wrong);
    if (!wrong.empty()) return false;
    if (world.model().is_undetermined()) return true;
  }
  return true;
}

// Prints a failure as a transcript. Its replies are those of the engine, not the expected ones.
void explain(const Profile& profile, const std::vector<Step>& steps, std::string_view first) {
  SharedText story;
  succeeds_apart(false, [&] { return play(profile, steps, &story).empty(); });
  std::cout << "seed " << profile.seed << " fails, " << (first.empty() ? "it died" : first) << "\n"
            << story.view() << std::flush;
}

bool check_seed(uint64_t seed, uint64_t steps) {
  const Profile profile(seed);
  SharedText trace;
  SharedText report;
  if (succeeds_apart(false, [&] { return run_seed(profile, steps, trace, report); })) return true;
  explain(profile,
          shortened(read_steps(trace.view()), [&](const auto& fewer) { return fails(profile, fewer); }),
          report.view());
  return false;
}

}  // namespace

TEST_CASE("simulation: engine and model give the same bytes for every sequence of requests and events") {
  check_seeds("simulation", 75, check_seed);
}

}  // namespace holdfast::simulation
