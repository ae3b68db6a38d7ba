// Clients without a connection of their own, as those of HTTP. They have the users and the permissions of
// all clients, and a connection of the engine for as long as one command takes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/base/types.h"
#include "core/command/acl.h"

namespace holdfast {

class Engine;
struct Command;

// As for Engine::open(). ACL LOG shows it.
struct VisitorAddress {
  std::string_view peer;
  std::string_view local;
};

// The user of a client that does not log in; null if each client must.
const AclUser* user_without_login(const Engine& engine);
// Returns null if there is no such user, it is off, or the password is wrong. Then ACL LOG gets an entry.
const AclUser* authenticate(Engine& engine, std::string_view user, std::string_view password,
                            const VisitorAddress& from, Now now);
// Returns null if there is no such user, or it is off.
const AclUser* find_user(const Engine& engine, std::string_view name);

// Whether a user may run a request. Its arity must fit.
bool may_run(const Engine& engine, const AclUser& user, std::span<const std::string_view> argv);
// The same. A denial gets an entry in ACL LOG.
Verdict check_visitor_command(Engine& engine, const AclUser& user, const VisitorAddress& from,
                              const Command& command, std::span<const std::string_view> argv, Now now);

// Opens the connection for one command: of this user, with RESP3, in the database that clients call `db`.
// Beyond so many bytes its output overflows.
ConnId open_for_command(Engine& engine, const AclUser& user, const VisitorAddress& from, size_t db,
                        size_t most_reply_bytes, Now now);

}  // namespace holdfast
