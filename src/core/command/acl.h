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

struct Command;
struct Conn;
struct EngineState;
struct Request;
struct Turn;

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
  bool lets_anybody_in() const { return default_user().nopass && default_user().enabled; }

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

// Whether a user may run a request whose command has been resolved and whose arity fits.
Verdict check_permission(const EngineState& s, const AclUser& user, const Command& command,
                         std::span<const std::string_view> argv);

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

// Notes a refusal. One like an earlier one of the last minute is counted with that.
void log_denial(Turn& t, const Conn& c, Denial why, AclContext context, std::string_view object,
                std::string_view username);
// The same for a request that check_permission() has refused.
void log_verdict(Turn& t, const Conn& c, Verdict verdict, AclContext context, const Command& command,
                 std::span<const std::string_view> argv);
// "This user has no permissions to run the 'get' command"
std::string denial_text(Verdict verdict, const Command& command, std::span<const std::string_view> argv);

// Whether the connection has still to say who it is.
bool needs_auth(const EngineState& s, const Conn& c);
// A connection that is new, or as good as new.
void forget_user(const EngineState& s, Conn& c);
void become_user(const EngineState& s, Conn& c, const AclUser& user);
// Users have changed: those connections that have lost theirs, or a channel they listen to, are closed.
void apply_users(Turn& t);
// CONFIG SET requirepass: empty, and "default" needs none.
void set_default_password(Turn& t, std::string_view password);

// take_request(): true where the request may not run; an error has been written. Only for connections that
// are `checked`.
bool refuse_by_acl(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv,
                   class Reply& reply);

}  // namespace holdfast
