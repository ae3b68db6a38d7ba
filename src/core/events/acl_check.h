// What the user of a connection may do, and what becomes of connections whose user changes.
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

// Notes a refusal. One like an earlier one of the last minute is counted with that.
void log_denial(Context& ctx, const Conn& c, Denial why, AclContext context, std::string_view object,
                std::string_view username);
// The same for a request that check_permission() has refused.
void log_verdict(Context& ctx, const Conn& c, Verdict verdict, AclContext context, const Command& command,
                 std::span<const std::string_view> argv);
// "This user has no permissions to run the 'get' command"
std::string denial_text(Verdict verdict, const Command& command, std::span<const std::string_view> argv);

// A connection that is new, or as good as new.
void forget_user(const EngineState& s, Conn& c);
void become_user(const EngineState& s, Conn& c, const AclUser& user);
// Users have changed: those connections that have lost theirs, or a channel they listen to, are closed.
void apply_users(Context& ctx);
// CONFIG SET requirepass: empty, and "default" needs none.
void set_default_password(Context& ctx, std::string_view password);

// dispatch_request(): true where the request may not run; an error has been written. Only for connections
// that are `checked`.
bool refuse_by_acl(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv,
                   class Reply& reply);

}  // namespace holdfast
