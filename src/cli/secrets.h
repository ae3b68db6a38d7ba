// Passwords of servers: where the command gets them from, and that its arguments do not show them.
#pragma once

#include <string>

#include "cli/options.h"

namespace holdfast {

// Overwrites what of the arguments may be a login, but for those of a command behind --, as everybody can
// read the arguments of a process. To be called once they are copied.
void hide_arguments(int argc, char** argv);

// The first line of the file, of standard input where the name is -, of which nothing else is read then.
// Throws as refuse() does.
std::string read_password(const std::string& file);

// The address, with the login of --user and --password-file for all servers that have none in it. What one
// of the two leaves out, the variables HOLDFAST_USER and HOLDFAST_PASSWORD say. Throws as refuse() does.
std::string with_login(const std::string& servers, const Given& given);

}  // namespace holdfast
