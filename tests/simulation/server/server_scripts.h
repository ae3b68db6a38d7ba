// Lua programs for EVAL. They use each library that scripts have, and read and write few keys.
#pragma once

#include <string>
#include <vector>

namespace holdfast::simulation {

// Programs with one key and one argument.
const std::vector<std::string>& scripts();
// Programs that run long enough to reach small limits of time or memory.
const std::vector<std::string>& slow_scripts();

}  // namespace holdfast::simulation
