// Replaces whole files outside of the data folder.
#pragma once

#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

// Returns the path of the folder that has the file.
std::string folder_of(const std::string& path);

// Returns the path of a regular or missing file without links. Another kind of file is an error: a read of
// a pipe may wait without end, and a device must not be replaced.
Result<std::string> regular_file(const std::string& path);

// Replaces the content of a regular file atomically: at any moment, and after a crash, the old or the new
// file exists. Writes a file beside it, syncs it, and renames it over the old one, with the old one's
// permissions and, if possible, its owner. A link stays a link.
Result<Done> replace_file(const std::string& path, std::string_view bytes);

}  // namespace holdfast
