// A process of the chaos tests that counts under a lock. It is this program again, with a test case that
// only such a process runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "process.h"

namespace holdfast::integration {

// The number of events by name, summed over clients.
using Tally = std::map<std::string, uint64_t>;

struct Counting {
  std::string place;             // quorum://...
  std::filesystem::path folder;  // folder of the Storage
  uint64_t target = 0;           // counts until the counter has this value
  uint64_t seed = 0;
  std::string clock;            // clock_setting()
  bool clock_is_right = false;  // whether its drift is within what the library allows for
};

// Start it as counting_program(). The process may stop itself (SIGSTOP): its parent must resume it. It ends
// with status 0.
Launch launch_of(const Counting& counting);
std::string counting_program();
// The tally in the output of such a process. Throws std::runtime_error if it is empty.
Tally tally_of(const std::string& output);

}  // namespace holdfast::integration
