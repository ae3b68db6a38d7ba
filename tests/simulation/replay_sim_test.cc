// Replay equals state, at every step: random requests of all commands run on an engine, and at random
// points a fresh engine with other options loads the last snapshot and replays all records since. Both have
// the same state. A run that fails is reduced to the necessary steps.
#include <doctest/doctest.h>

#include <iostream>

#include "apart.h"
#include "replay_requests.h"
#include "replay_world.h"
#include "seeds.h"
#include "shorten.h"

namespace holdfast::simulation {
namespace {

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 400)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= ' ' && byte < 0x7F ? std::string(1, c) : "\\" + std::to_string(int{byte});
  }
  return text.size() > 400 ? out + "... (" + std::to_string(text.size()) + " bytes)" : out;
}

std::string written(const ReplayStep& step) {
  static constexpr const char* kNames[] = {"",         "tick", "reconnect", "options",
                                           "snapshot", "walk", "compare",   "restart"};
  std::string line = "@" + std::to_string(step.ms) + " " + kNames[static_cast<size_t>(step.kind)];
  if (step.kind == ReplayStep::Kind::kAsk) {
    line += std::string(1, static_cast<char>('A' + step.number)) + " >";
    for (size_t i = 0; i < std::min<size_t>(step.words.size(), 12); ++i)
      line += " " + (step.words[i].empty() ? "\"\"" : printable(step.words[i]));
    if (step.words.size() > 12) line += " ... (" + std::to_string(step.words.size()) + " words)";
  } else {
    line += " " + std::to_string(step.number);
  }
  return line + (step.ends_iteration ? "\n" : " (same iteration)\n");
}

bool fails(uint64_t seed, const std::vector<ReplayStep>& steps, SharedText* story) {
  return !succeeds_apart(true, [&] {
    ReplayWorld world(seed);
    for (const ReplayStep& step : steps) {
      if (story != nullptr) story->append(written(step));
      const std::string wrong = world.play(step);
      if (wrong.empty()) continue;
      if (story != nullptr) story->append("# " + wrong + "\n");
      return false;
    }
    return true;
  });
}

// The steps of a run until its first fault.
std::vector<ReplayStep> steps_of(uint64_t seed, uint64_t most) {
  ReplayWorld world(seed);
  ReplayRequests requests(seed);
  std::vector<ReplayStep> steps;
  for (uint64_t n = 0; n < most; ++n) {
    steps.push_back(requests.next(world));
    if (!world.play(steps.back()).empty()) break;
  }
  return steps;
}

// Plays one run. Writes each step to `last` before it plays it.
bool run_seed(uint64_t seed, uint64_t most, SharedText& last, SharedText& fault) {
  ReplayWorld world(seed);
  ReplayRequests requests(seed);
  for (uint64_t n = 0; n < most; ++n) {
    const ReplayStep step = requests.next(world);
    last.replace(written(step));
    const std::string wrong = world.play(step);
    if (wrong.empty()) continue;
    fault.append("step " + std::to_string(n) + ": " + wrong + "\n");
    return false;
  }
  return true;
}

bool check_seed(uint64_t seed, uint64_t most) {
  SharedText last;
  SharedText fault;
  if (succeeds_apart(false, [&] { return run_seed(seed, most, last, fault); })) return true;
  const bool died = fault.view().empty();
  std::cout << "seed " << seed << " fails, ";
  if (died) {
    std::cout << "the process died in the step " << last.view() << std::flush;
    return false;
  }
  std::cout << fault.view();
  SharedText story;
  const auto fewer =
      shortened(steps_of(seed, most), [&](const auto& steps) { return fails(seed, steps, nullptr); });
  fails(seed, fewer, &story);
  std::cout << story.view() << std::flush;
  return false;
}

}  // namespace

TEST_CASE("simulation: snapshot and records give the state, at every step and with other options") {
  check_seeds("replay", 30, check_seed);
}

}  // namespace holdfast::simulation
