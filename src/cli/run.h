// `holdfast run`: runs a command while it holds a lock.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// `words` are the arguments behind `run`. Reports errors on standard error. Returns the exit status that
// `holdfast run --help` documents. Call it while the process has only its main thread.
int run_under_lock(const std::vector<std::string>& words);

}  // namespace holdfast
