// The program `holdfast proxy`.
#pragma once

#include <string>

namespace holdfast::proxy {

// What --help prints.
std::string help_text();

// `argv[0]` is the name of the program, then its options. Returns the exit status.
int run_proxy(int argc, char** argv);

}  // namespace holdfast::proxy
