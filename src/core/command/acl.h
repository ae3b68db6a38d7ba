// Who may do what: the users, whom a connection has become, and the log of refusals. A connection that may
// do all costs one comparison a command: Conn::checked is false.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"
#include "core/command/acl_rules.h"

namespace holdfast {

class Acl {
 public:
  using Users = absl::btree_map<std::string, std::unique_ptr<AclUser>, std::less<>>;

  // There is one user, "default", who may do all without a password; with `password`, only with that.
  explicit Acl(std::string_view password);

  AclUser& default_user() const { return *users_.find("default")->second; }
  // Null where there is none. Its address lasts until it is removed.
  AclUser* find(std::string_view name) const;
  const Users& users() const { return users_; }
  AclUser& add(std::string_view name);
  bool remove(std::string_view name) { return users_.erase(std::string(name)) > 0; }
  // Whom a connection is whose user has gone: may do nothing.
  const AclUser& nobody() const { return nobody_; }

  // The users of a text, a line each: "user name rules". Empty, and they take the place of all that there
  // were (a "default" that it does not name may do all, with the password given at the start or since); or
  // what is wrong, and nothing has changed. `source` is what the errors say of where it comes from. Users
  // that stay as they were keep their address.
  std::string load(std::string_view text, std::string_view source);
  // Each user's name and rules: what stands behind "user " in a line that load() takes.
  std::vector<std::string> lines() const;
  // Whether they say no more than the password given to the constructor, or since.
  bool is_plain() const;
  // Empty: "default" needs none.
  void set_default_password(std::string_view password);

  // Null: the password is wrong, or there is no such user, or it is off. Takes the same time for every
  // user that has the same number of passwords, and for none.
  const AclUser* authenticate(std::string_view name, std::string_view password) const;
  // Whether a connection that has said nothing may go on as "default".
  bool allows_unauthenticated() const { return default_user().nopass && default_user().enabled; }

 private:
  std::unique_ptr<AclUser> make_default() const;
  void keep_password(std::string_view password);

  std::string password_rule_;  // of "default", as requirepass has it
  Users users_;
  AclUser nobody_;
};

enum class Denial : uint8_t { kNone, kCommand, kKey, kAuth, kChannel };
struct Verdict {
  Denial why = Denial::kNone;
  size_t at = 0;  // the argument that it is about

  bool allowed() const { return why == Denial::kNone; }
};

// Where a command stands that was refused, for the log.
enum class AclContext : uint8_t { kTopLevel, kMulti, kScript };

// What ACL LOG keeps.
struct AclLogEntry {
  int64_t count = 1;
  Denial why = Denial::kNone;
  AclContext context = AclContext::kTopLevel;
  std::string object, username, client;
  TimeMs at;
};
using AclLog = std::deque<AclLogEntry>;  // the newest first

}  // namespace holdfast
