// The users of the server, from a file of their own or from the options.
#pragma once

#include <string>

#include "core/base/config.h"
#include "io/config/options.h"

namespace holdfast {

struct UsersText {
  std::string text;    // lines of "user name rules"
  std::string source;  // where they come from
};

// Those of the options; of an ACL file only where it is.
UsersText users_of(const Options& options);
// Returns why it cannot be read, or nothing.
std::string read_acl_file(const std::string& path, std::string& text);
// Empty doors where there is no such file.
AclFileHooks acl_file_door(const std::string& path);

}  // namespace holdfast
