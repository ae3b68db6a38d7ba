// Replaces whole files outside of the data folder.
#pragma once

#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

// Returns the path of the folder that has the file.
std::string folder_of(const std::string& path);

// Replaces the content of a file atomically: at any moment, and after a crash, the old or the new file
// exists. Writes a file beside it, syncs it, and renames it over the old one, with the old one's
// permissions.
Result<Done> replace_file(const std::string& path, std::string_view bytes);

}  // namespace holdfast
