// PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET.
#include <string>
#include <utility>

#include "core/base/version.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/events/describe_client.h"
#include "core/events/invalidate.h"
#include "core/events/monitor.h"
#include "core/events/publish.h"
#include "core/lock/sessions.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/effects.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/request.h"
#include "core/state/watches.h"

namespace holdfast {

namespace {

// Authenticates the connection as that user. Writes an error and returns false if it cannot.
bool authenticate(Request& r, std::string_view name, std::string_view password) {
  const AclUser* user = r.s().acl.authenticate(name, password);
  if (user != nullptr) return become_user(r.s(), r.c, *user), true;
  log_denial(r.ctx, r.c, Denial::kAuth, r.c.in_exec ? AclContext::kMulti : AclContext::kTopLevel, r.arg(0),
             name);
  r.reply.error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

struct HelloOptions {
  std::optional<int64_t> protocol;
  std::optional<std::string_view> name;
};

std::optional<HelloOptions> read_hello(Request& r) {
  HelloOptions o;
  if (r.argc() == 1) return o;
  o.protocol = parse_int(r.arg(1));
  if (!o.protocol)
    return r.reply.error("ERR Protocol version is not an integer or out of range"), std::nullopt;
  if (*o.protocol != 2 && *o.protocol != 3) {
    return r.reply.error("NOPROTO unsupported protocol version"), std::nullopt;
  }
  for (size_t i = 2; i < r.argc(); ++i) {
    if (equals_ignore_case(r.arg(i), "AUTH") && i + 2 < r.argc()) {
      if (!authenticate(r, r.arg(i + 1), r.arg(i + 2))) return std::nullopt;
      i += 2;
    } else if (equals_ignore_case(r.arg(i), "SETNAME") && i + 1 < r.argc()) {
      o.name = r.arg(++i);
      if (const std::string why = wrong_name(*o.name, "Client names"); !why.empty())
        return r.reply.error(why), std::nullopt;
    } else {
      r.reply.error("ERR Syntax error in HELLO option '" + std::string(r.arg(i)) + "'");
      return std::nullopt;
    }
  }
  return o;
}

}  // namespace

void cmd_ping(Request& r) {
  if (r.argc() > 2) return reply_wrong_arity(r);
  if (r.c.protocol < 3 && r.c.subscriptions() > 0) {  // as a Pub/Sub message
    r.reply.array(2);
    r.reply.bulk("pong");
    return r.reply.bulk(r.argc() == 2 ? r.arg(1) : "");
  }
  r.argc() == 2 ? r.reply.bulk(r.arg(1)) : r.reply.simple("PONG");
}

void cmd_echo(Request& r) { r.reply.bulk(r.arg(1)); }

void cmd_hello(Request& r) {
  const auto options = read_hello(r);
  if (!options) return;
  if (needs_auth(r.s(), r.c)) {
    return r.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
        "<user> "
        "<pass> option can be used to authenticate the client and select the RESP protocol version at the "
        "same time");
  }
  if (options->protocol) r.c.protocol = static_cast<int>(*options->protocol);
  if (r.c.protocol < 3)
    cancel_waits(r.ctx, r.c,
                 WaitEnd::kReset);  // ASYNC waits: RESP2 cannot distinguish their pushes from replies
  if (options->name) set_text(r.s().memory, r.c.name, *options->name);
  Reply reply(r.reply.out(), r.c.protocol);  // the reply already uses the new protocol
  reply.map(7);
  reply.bulk("server");
  reply.bulk("redis");
  reply.bulk("version");
  reply.bulk(kRedisVersion);
  reply.bulk("proto");
  reply.integer(r.c.protocol);
  reply.bulk("id");
  reply.integer(static_cast<int64_t>(r.c.id.serial));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  reply.array(0);
}

void cmd_auth(Request& r) {
  if (r.argc() > 3) return reply_syntax_error(r);
  if (r.argc() == 2 && r.s().acl.default_user().nopass) {
    return r.reply.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure "
        "your "
        "configuration is correct?");
  }
  const bool named = r.argc() == 3;
  if (authenticate(r, named ? r.arg(1) : "default", r.arg(named ? 2 : 1))) r.reply.ok();
}

void cmd_select(Request& r) {
  const auto db = parse_int(r.arg(1));
  if (!db) return reply_not_an_integer(r);
  if (*db < INT32_MIN || *db > INT32_MAX) {
    return r.reply.error("ERR value is out of range, value must between -2147483648 and 2147483647");
  }
  if (*db < 0 || *db >= kDatabases) return r.reply.error("ERR DB index is out of range");
  r.c.db = r.s().db_at[static_cast<size_t>(*db)];
  r.reply.ok();
}

void cmd_quit(Request& r) {
  r.reply.ok();
  r.c.closing = true;
  r.ctx.fx.closes.push_back(r.c.id);
}

// Resets the connection to the state of a new one. Its SESSION holds end, as on a disconnect.
void cmd_reset(Request& r) {
  cancel_waits(r.ctx, r.c, WaitEnd::kReset);
  end_session(r.ctx, r.c.id, r.c.session++, std::exchange(r.c.session_holds, {}));
  unsubscribe_all(r.ctx, r.c);
  stop_tracking(r.ctx, r.c);
  stop_monitoring(r.ctx, r.c);
  r.s().watches.clear(r.c);
  end_transaction(r.s().deferred_free, std::move(r.c.transaction));
  r.c.reply_mode = ReplyMode::kOn;
  r.c.no_evict = r.c.no_touch = false;
  r.c.db = r.s().db_at[0];
  r.c.protocol = 2;
  set_text(r.s().memory, r.c.name, "");
  forget_user(r.s(), r.c);
  r.reply.simple("RESET");
}

}  // namespace holdfast
