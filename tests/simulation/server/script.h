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

// Returns the number that the word at this index is; 0 if there is no such word.
uint64_t number(const std::vector<std::string>& words, size_t at);

// Returns a step of these words, and of `more` behind them.
ScriptStep step_of(int64_t run_us, std::vector<std::string> words, const std::vector<std::string>& more);

// Reads the lines of a script. Empty lines and lines that begin with # have no steps.
std::vector<ScriptStep> read_script(std::string_view text);

}  // namespace holdfast::simulation
