// Files outside of the data folder that are replaced whole.
#pragma once

#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

// Puts `bytes` in the place of a file, so that at any moment, and after a crash, there is the old file or
// the new one: written beside it, synced, and renamed over it, with the old one's permissions.
Result<Done> replace_file(const std::string& path, std::string_view bytes);

}  // namespace holdfast
