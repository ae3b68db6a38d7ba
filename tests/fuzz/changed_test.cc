// The kept inputs of each target with random changes: fuzzing without the build of libFuzzer, for the
// slices of `.ci/run`. HOLDFAST_FUZZ_CHANGES is the number of changed inputs for each kept one,
// HOLDFAST_SEED the first seed. One seed decides all changes of one kept input.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/targets.h"
#include "simulation/apart.h"

namespace holdfast::fuzz {

namespace {

namespace fs = std::filesystem;
using Dice = std::mt19937_64;

constexpr size_t kMostEdits = 6;   // of one input
constexpr size_t kMostBytes = 16;  // of one edit

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

size_t below(Dice& dice, size_t n) { return n == 0 ? 0 : static_cast<size_t>(dice() % n); }

// Overwrites, inserts, removes or repeats some bytes.
void edit(std::string& input, Dice& dice) {
  const size_t at = below(dice, input.size());
  const size_t size = std::min(1 + below(dice, kMostBytes), input.size() - at);
  switch (below(dice, 4)) {
    case 0:
      for (size_t i = at; i < at + size; ++i) input[i] = static_cast<char>(dice());
      return;
    case 1:
      input.insert(at, 1 + below(dice, kMostBytes), static_cast<char>(dice()));
      return;
    case 2:
      input.erase(at, size);
      return;
    default:
      input.insert(at, input.substr(at, size));
  }
}

std::string changed(std::string input, Dice& dice) {
  for (size_t edits = 1 + below(dice, kMostEdits); edits > 0; --edits) edit(input, dice);
  return input;
}

std::vector<fs::path> kept_inputs(std::string_view target) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(fs::path("tests/fuzz") / target))
    files.push_back(file.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("fuzz: kept inputs with random changes run without a fault" * doctest::skip()) {
  const uint64_t changes = from_environment("HOLDFAST_FUZZ_CHANGES", 20);
  uint64_t seed = from_environment("HOLDFAST_SEED", 1);
  for (const Target& target : all_targets()) {
    for (const fs::path& path : kept_inputs(target.name)) {
      std::ifstream file(path, std::ios::binary);
      const std::string kept(std::istreambuf_iterator<char>(file), {});
      const bool good = simulation::succeeds_apart(false, [&] {
        Dice dice(seed);
        for (uint64_t n = 0; n < changes; ++n) target.run(changed(kept, dice));
        return true;
      });
      CHECK_MESSAGE(good, "seed ", seed, " fails: changes of ", path.string());
      ++seed;
    }
  }
}

}  // namespace holdfast::fuzz
