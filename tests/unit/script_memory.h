// Engines with little memory for scripts, and what they use of it.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>

#include "core/engine/engine_parts.h"
#include "session.h"

namespace holdfast {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

inline Config script_limits(uint64_t all_bytes, uint64_t run_bytes) {
  Config config = session_config();
  config.limits.script_memory_bytes = all_bytes;
  config.limits.script_run_bytes = run_bytes;
  return config;
}

inline uint64_t script_bytes(Engine& engine) { return engine.state().scripts.memory_bytes(); }

// Runs the iterations of the loop in which the engine has work at once. Returns their number.
inline int turns_of_work(Engine& engine) {
  int turns = 0;
  Effects fx;
  for (; engine.next_deadline() && engine.next_deadline()->count == 0; ++turns) {
    engine.tick(session_time(0), fx);
    REQUIRE(turns < 100'000);
  }
  return turns;
}

}  // namespace holdfast
