// Logins and permissions without a connection.
#include "core/engine/visitors.h"

#include "core/command/command.h"
#include "core/engine/engine.h"
#include "core/events/acl_check.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"

namespace holdfast {

namespace {

// A connection of this client for ACL LOG, unknown to the engine.
Conn shown_conn(const AclUser& user, const VisitorAddress& from, Now now) {
  Conn conn;
  conn.peer = from.peer;
  conn.local = from.local;
  conn.user = &user;
  conn.opened = conn.last_active = now.mono;
  return conn;
}

}  // namespace

const AclUser* user_without_login(const Engine& engine) {
  const Acl& acl = engine.state().acl;
  return acl.allows_unauthenticated() ? &acl.default_user() : nullptr;
}

const AclUser* authenticate(Engine& engine, std::string_view user, std::string_view password,
                            const VisitorAddress& from, Now now) {
  EngineState& s = engine.state();
  const AclUser* const found = s.acl.authenticate(user, password);
  if (found != nullptr) return found;
  Effects none;
  Context ctx{s, now, none};
  const Conn conn = shown_conn(s.acl.default_user(), from, now);
  log_denial(ctx, conn, Denial::kAuth, AclContext::kTopLevel, "http", user);
  return nullptr;
}

const AclUser* find_user(const Engine& engine, std::string_view name) {
  const AclUser* const user = engine.state().acl.find(name);
  return user != nullptr && user->enabled ? user : nullptr;
}

bool may_run(const Engine& engine, const AclUser& user, std::span<const std::string_view> argv) {
  const Command* const command = find_row(argv);
  if (command == nullptr) return false;
  return user.unlimited || check_permission(engine.state(), user, *command, argv).allowed();
}

Verdict check_visitor_command(Engine& engine, const AclUser& user, const VisitorAddress& from,
                              const Command& command, std::span<const std::string_view> argv, Now now) {
  if (user.unlimited) return {};
  EngineState& s = engine.state();
  const Verdict verdict = check_permission(s, user, command, argv);
  if (verdict.allowed()) return verdict;
  Effects none;
  Context ctx{s, now, none};
  log_verdict(ctx, shown_conn(user, from, now), verdict, AclContext::kTopLevel, command, argv);
  return verdict;
}

ConnId open_for_command(Engine& engine, const AclUser& user, const VisitorAddress& from, size_t db,
                        size_t most_reply_bytes, Now now) {
  EngineState& s = engine.state();
  const ConnId id = engine.open(from.peer, from.local, now);
  Conn& c = s.conns.at(id);
  become_user(s, c, user);
  c.protocol = 3;
  c.db = s.db_at[db];
  c.out.set_limit(most_reply_bytes);
  return id;
}

}  // namespace holdfast
