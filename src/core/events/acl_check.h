// Permission checks for the user of a connection, and the effect of user changes on connections.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/command/acl.h"

namespace holdfast {

struct Command;
struct Conn;
struct EngineState;
struct Context;

// Whether a user may run a request whose command has been resolved and whose arity fits.
Verdict check_permission(const EngineState& s, const AclUser& user, const Command& command,
                         std::span<const std::string_view> argv);

// Whether a user may read a key, by whatever command.
bool may_read_key(const AclUser& user, std::string_view key);

// Adds a rejection to ACL LOG. A rejection like an earlier one of the last 60 s increments the count of
// that one.
void log_denial(Context& ctx, const Conn& c, Denial why, AclContext context, std::string_view object,
                std::string_view username);
// The same for a request that check_permission() rejected.
void log_verdict(Context& ctx, const Conn& c, Verdict verdict, AclContext context, const Command& command,
                 std::span<const std::string_view> argv);
// "This user has no permissions to run the 'get' command"
std::string denial_text(Verdict verdict, const Command& command, std::span<const std::string_view> argv);

// forget_user() sets the user of a connection that is new or was reset. become_user() sets it after a
// successful AUTH.
void forget_user(const EngineState& s, Conn& c);
void become_user(const EngineState& s, Conn& c, const AclUser& user);
// After a change of users: closes the connections whose user was removed, or that lost access to a channel
// that they subscribe to.
void apply_users(Context& ctx);
// CONFIG SET requirepass: sets the password of "default". Empty: "default" needs no password.
void set_default_password(Context& ctx, std::string_view password);

// For dispatch_request(): returns true, and writes an error, if the request may not run. Only for
// connections with Conn::checked set.
bool refuse_by_acl(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv,
                   class Reply& reply);

}  // namespace holdfast
