// Reads the users of the server from the ACL file or from the options.
#pragma once

#include <string>

#include "core/base/config.h"
#include "io/config/options.h"

namespace holdfast {

struct UsersText {
  std::string text;    // lines of "user name rules"
  std::string source;  // the path of the ACL file, or "user" for the option
};

// Returns the users in the options. With an ACL file, `text` is empty and `source` is its path.
UsersText users_of(const Options& options);
// Reads the file into `text`. Returns an empty string, or why it cannot be read.
std::string read_acl_file(const std::string& path, std::string& text);
// Reads and checks the users at the start.
Result<UsersText> read_users(const Options& options);
// Returns the hooks that read and write the ACL file. The hooks are empty if `path` is empty.
AclFileHooks acl_file_hooks(const std::string& path);

}  // namespace holdfast
