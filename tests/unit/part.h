// The part of a long test that runs on each change. HOLDFAST_SEED selects it, so that many changes run all
// parts. With HOLDFAST_THOROUGH=1, as in `make test-all`, everything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace holdfast {

inline uint64_t seed_of_run() {
  const char* const given = std::getenv("HOLDFAST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

inline bool is_thorough() { return std::getenv("HOLDFAST_THOROUGH") != nullptr; }

// For a loop over many cases: `for (size_t at = part.first; at < cases; at += part.step)`.
struct Part {
  size_t first;
  size_t step;
};

// One case of so many.
inline Part one_of(size_t cases) {
  return is_thorough() ? Part{0, 1} : Part{static_cast<size_t>(seed_of_run() % cases), cases};
}

}  // namespace holdfast
