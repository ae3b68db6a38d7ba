// `holdfast check`: whether files of a data folder are as they should be, without a server.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// Checks each path: a snapshot, a journal, a meta file, or a folder with all of them. Tells on standard
// output what it found, a line each or, with `json`, as one JSON value. `repair`: cuts journals where the
// first damage is; the original stays beside, with
// ".damaged" behind its name. Returns the exit status: 0 all is well (or has been made so), 1 it is not.
int check_files(const std::vector<std::string>& paths, bool repair, bool json);

}  // namespace holdfast
