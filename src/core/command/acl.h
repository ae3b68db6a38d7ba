// Access control: the users, their authentication, and the log of denials. A connection without
// restrictions costs one comparison per command: Conn::checked is false.
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

  // Makes one user, "default", without restrictions. It needs `password`, or no password if that is empty.
  explicit Acl(std::string_view password);

  AclUser& default_user() const { return *users_.find("default")->second; }
  // Returns null if there is no such user. The address of a user is valid until its removal.
  AclUser* find(std::string_view name) const;
  const Users& users() const { return users_; }
  AclUser& add(std::string_view name);
  bool remove(std::string_view name) { return users_.erase(std::string(name)) > 0; }
  // The user of a connection whose own user was removed: it has no permissions.
  const AclUser& removed_user() const { return removed_user_; }

  // Replaces all users by those of a text with one line per user: "user name rules". If the text does not
  // name "default", that user has no restrictions and the password last set. Returns an empty string, or
  // the error; after an error nothing has changed. `source` names the origin of the text in errors. Users
  // that do not change keep their address.
  std::string load(std::string_view text, std::string_view source);
  // Returns each user's name and rules: the part behind "user " of a line for load().
  std::vector<std::string> lines() const;
  // Whether the users are only "default" with the password given to the constructor or set since.
  bool is_plain() const;
  // Sets the password of "default". Empty: "default" needs no password.
  void set_default_password(std::string_view password);

  // Returns the user; null if the password is wrong, there is no such user, or it is off. Takes the same
  // time for all users with the same number of passwords, and for an unknown user.
  const AclUser* authenticate(std::string_view name, std::string_view password) const;
  // Whether a connection without authentication may act as "default".
  bool allows_unauthenticated() const { return default_user().nopass && default_user().enabled; }

 private:
  std::unique_ptr<AclUser> make_default() const;
  void keep_password(std::string_view password);

  std::string password_rule_;  // of "default", as set by requirepass
  Users users_;
  AclUser removed_user_;
};

enum class Denial : uint8_t { kNone, kCommand, kKey, kAuth, kChannel };
struct Verdict {
  Denial why = Denial::kNone;
  size_t at = 0;  // the index of the argument that caused the denial

  bool allowed() const { return why == Denial::kNone; }
};

// The context of a denied command, for ACL LOG.
enum class AclContext : uint8_t { kTopLevel, kMulti, kScript };

// One entry of ACL LOG.
struct AclLogEntry {
  int64_t count = 1;
  Denial why = Denial::kNone;
  AclContext context = AclContext::kTopLevel;
  std::string object, username, client;
  TimeMs at;
};
using AclLog = std::deque<AclLogEntry>;  // the newest first

}  // namespace holdfast
