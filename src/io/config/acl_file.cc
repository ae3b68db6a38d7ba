// Reads the ACL file in one step, and replaces it as a whole.
#include "io/config/acl_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/command/acl.h"
#include "io/os/replace_file.h"

namespace holdfast {

UsersText users_of(const Options& options) {
  if (!options.aclfile.empty()) return {"", options.aclfile};
  UsersText users{"", "user"};
  std::istringstream lines(options.users);
  for (std::string line; std::getline(lines, line);) users.text += "user " + line + "\n";
  return users;
}

std::string read_acl_file(const std::string& path, std::string& text) {
  std::ifstream file(path);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  // The insertion of an empty file writes no bytes and fails, too.
  const bool read = file && (bytes || file.peek() == std::ifstream::traits_type::eof());
  if (!read || file.bad()) {
    return fmt::format("Error loading ACLs, opening file '{}': {}", path, std::strerror(errno));
  }
  text = bytes.str();
  return "";
}

Result<UsersText> read_users(const Options& options) {
  UsersText users = users_of(options);
  if (!options.aclfile.empty()) {
    if (const std::string why = read_acl_file(options.aclfile, users.text); !why.empty())
      return Failure{why};
  }
  if (std::string why = Acl("").load(users.text, users.source); !why.empty()) return Failure{why};
  return users;
}

AclFileHooks acl_file_hooks(const std::string& path) {
  if (path.empty()) return {};
  AclFileHooks hooks;
  hooks.read = [path](std::string& text) { return read_acl_file(path, text); };
  hooks.write = [path](std::string_view text) {
    const Result<Done> done = replace_file(path, text);
    return done ? std::string() : done.error();
  };
  return hooks;
}

}  // namespace holdfast
