// One step of a simulated run as a line of text, so that a run can be printed, shortened and played again:
//   +MICROSECONDS verb argument ...
// After the step so much time passes. world.h has the verbs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::simulation {

struct ScriptStep {
  int64_t run_us = 0;
  std::vector<std::string> words;

  std::string text() const;
};

// Reads the lines of a script. Empty lines and lines that begin with # have no steps.
std::vector<ScriptStep> read_script(std::string_view text);

}  // namespace holdfast::simulation
