// The passwords of servers: reads them from files, and hides them in the arguments of the process.
#pragma once

#include <string>

#include "cli/options.h"

namespace holdfast {

// Overwrites each part of the arguments that may be a login, because every user of the machine can read the
// arguments of a process. Leaves the arguments behind -- alone. Call it after the arguments are copied.
void hide_arguments(int argc, char** argv);

// Returns the first line of the file, or of standard input if the name is -. Reads nothing behind that
// line. Throws as refuse() does.
std::string read_password(const std::string& file);

// Returns the address with the login of --user and --password-file added. It applies to all servers without
// a login of their own. If one of the two options is missing, the variable HOLDFAST_USER or
// HOLDFAST_PASSWORD replaces it. Throws as refuse() does.
std::string with_login(const std::string& servers, const Given& given);

}  // namespace holdfast
