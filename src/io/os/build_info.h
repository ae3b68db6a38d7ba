// What --version prints: the version, and what the program was built from and with.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Returns lines: program and version; the commit, unless it was built outside of git; the compiler; the
// libraries, with the versions whose headers it was built with.
std::string version_text(std::string_view program);

}  // namespace holdfast
