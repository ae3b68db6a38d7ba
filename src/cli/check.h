// `holdfast check`: verifies and repairs the files of a data folder, without a server.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// Checks each path: a snapshot, a journal, a meta file, or a folder with all of them. Prints one line for
// each finding on standard output or, with `json`, one JSON value. `repair`: cuts journals at the first
// damage; the original stays beside as NAME.damaged. Returns the exit status: 0 if all files are good or
// repaired, else 1.
int check_files(const std::vector<std::string>& paths, bool repair, bool json);

}  // namespace holdfast
