// holdfast restore: makes a data folder from a backup.
#pragma once

#include <string>

namespace holdfast {

// `path`: the backup, or "-" for standard input. Writes nothing to `dir` unless it is empty or missing, and
// all of the backup is good. Returns the exit status.
int restore_backup(const std::string& path, const std::string& dir, bool json);

}  // namespace holdfast
