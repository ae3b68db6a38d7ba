// `holdfast run`: a command under a lock.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// `words` are those behind `run`. Tells what goes wrong on standard error, and returns the exit status, as
// `holdfast run --help` has them. To be called while the program has no thread but its first.
int run_under_lock(const std::vector<std::string>& words);

}  // namespace holdfast
