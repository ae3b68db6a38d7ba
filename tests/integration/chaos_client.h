// A process that counts under a lock, as a part of the chaos tests: this program once more, with a test
// case that only such a process plays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "process.h"

namespace holdfast::integration {

// What happened, by name; summed over clients.
using Tally = std::map<std::string, uint64_t>;

struct Counting {
  std::string place;             // quorum://...
  std::filesystem::path folder;  // of the Storage
  uint64_t target = 0;           // counts until the counter is there
  uint64_t seed = 0;
  std::string clock;            // clock_setting()
  bool clock_is_right = false;  // within the drift that the library allows for
};

// To be started as counting_program(). It may stop itself (SIGSTOP): whoever started it has to wake it.
// Ends with status 0.
Launch launch_of(const Counting& counting);
std::string counting_program();
// Of what such a process has printed; throws std::runtime_error if nothing.
Tally tally_of(const std::string& output);

}  // namespace holdfast::integration
