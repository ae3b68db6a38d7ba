// CLIENT: names, lists and closes connections.
#include <algorithm>
#include <string>
#include <vector>

#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/command/handlers.h"
#include "core/events/describe_client.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/effects.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

std::vector<Conn*> sorted(std::vector<Conn*> conns) {
  std::ranges::sort(conns, {}, [](const Conn* c) { return c->id.serial; });
  return conns;
}

std::vector<Conn*> all_conns(const Request& r) {
  std::vector<Conn*> conns;
  r.s().conns.for_each([&](Conn& c) {
    if (!c.leaving) conns.push_back(&c);
  });
  return sorted(std::move(conns));
}

void reply_list(Request& r, const std::vector<Conn*>& conns) {
  std::string text;
  for (const Conn* c : conns) text += describe_client(r.ctx, *c) + "\n";
  r.reply.verbatim(text);
}

void kill(Request& r, Conn& c) {
  c.closing = true;
  r.ctx.fx.closes.push_back(c.id);
}

// The filters of CLIENT KILL. A connection must match all given ones.
struct KillFilter {
  std::optional<uint64_t> id;
  std::optional<std::string_view> addr, laddr, type;
  const AclUser* user = nullptr;
  bool skip_me = true;

  bool passes(const Request& r, const Conn& c) const {
    if (c.closing || (skip_me && &c == &r.c)) return false;
    if (id && c.id.serial != *id) return false;
    if (addr && c.peer != *addr) return false;
    if (laddr && c.local != *laddr) return false;
    if (user != nullptr && c.user != user) return false;
    return !type || equals_ignore_case(*type, c.subscriptions() > 0 ? "pubsub" : "normal");
  }
};

bool read_kill_filter(Request& r, std::string_view word, std::string_view value, KillFilter& f) {
  if (equals_ignore_case(word, "ID")) {
    const auto id = parse_int(value);
    if (!id || *id < 1) return r.reply.error("ERR client-id should be greater than 0"), false;
    f.id = static_cast<uint64_t>(*id);
  } else if (equals_ignore_case(word, "ADDR")) {
    f.addr = value;
  } else if (equals_ignore_case(word, "LADDR")) {
    f.laddr = value;
  } else if (equals_ignore_case(word, "USER")) {
    f.user = r.s().acl.find(value);
    if (f.user == nullptr) return r.reply.error("ERR No such user '" + std::string(value) + "'"), false;
  } else if (equals_ignore_case(word, "TYPE")) {
    static constexpr std::string_view kTypes[] = {"normal", "master", "replica", "slave", "pubsub"};
    const bool known =
        std::ranges::any_of(kTypes, [&](auto known_type) { return equals_ignore_case(value, known_type); });
    if (!known) return r.reply.error("ERR Unknown client type '" + std::string(value) + "'"), false;
    f.type = value;
  } else if (equals_ignore_case(word, "SKIPME") &&
             (equals_ignore_case(value, "yes") || equals_ignore_case(value, "no"))) {
    f.skip_me = equals_ignore_case(value, "yes");
  } else {
    return reply_syntax_error(r), false;
  }
  return true;
}

}  // namespace

void cmd_client_id(Request& r) { r.reply.integer(static_cast<int64_t>(r.c.id.serial)); }

void cmd_client_setname(Request& r) {
  if (const std::string why = wrong_name(r.arg(2), "Client names"); !why.empty()) return r.reply.error(why);
  set_text(r.s().memory, r.c.name, r.arg(2));
  r.reply.ok();
}

void cmd_client_getname(Request& r) { r.c.name.empty() ? r.reply.null() : r.reply.bulk(r.c.name); }

void cmd_client_setinfo(Request& r) {
  const bool name = equals_ignore_case(r.arg(2), "LIB-NAME");
  if (!name && !equals_ignore_case(r.arg(2), "LIB-VER")) {
    return r.reply.error("ERR Unrecognized option '" + std::string(r.arg(2)) + "'");
  }
  const std::string why = wrong_name(r.arg(3), name ? "lib-name" : "lib-ver");
  if (!why.empty()) return r.reply.error(why);
  set_text(r.s().memory, name ? r.c.lib_name : r.c.lib_version, r.arg(3));
  r.reply.ok();
}

void cmd_client_list(Request& r) {
  if (r.argc() == 2) return reply_list(r, all_conns(r));
  if (r.argc() == 4 && equals_ignore_case(r.arg(2), "TYPE")) {
    KillFilter f;
    f.skip_me = false;
    if (!read_kill_filter(r, "TYPE", r.arg(3), f)) return;
    std::vector<Conn*> conns = all_conns(r);
    std::erase_if(conns, [&](const Conn* c) { return !f.passes(r, *c); });
    return reply_list(r, conns);
  }
  if (r.argc() < 4 || !equals_ignore_case(r.arg(2), "ID")) return reply_syntax_error(r);
  std::vector<Conn*> conns;
  for (size_t i = 3; i < r.argc(); ++i) {
    const auto id = parse_int(r.arg(i));
    if (!id) return r.reply.error("ERR Invalid client ID");
    if (Conn* c = r.s().conns.find_serial(static_cast<uint64_t>(*id))) conns.push_back(c);
  }
  reply_list(r, conns);
}

void cmd_client_info(Request& r) { r.reply.verbatim(describe_client(r.ctx, r.c) + "\n"); }

void cmd_client_kill(Request& r) {
  KillFilter f;
  const bool old_style = r.argc() == 3;  // CLIENT KILL addr
  if (old_style) {
    f.addr = r.arg(2);
    f.skip_me = false;
  } else if (r.argc() % 2 != 0) {
    return reply_syntax_error(r);
  }
  for (size_t i = 2; !old_style && i < r.argc(); i += 2) {
    if (!read_kill_filter(r, r.arg(i), r.arg(i + 1), f)) return;
  }
  int64_t killed = 0;
  for (Conn* c : all_conns(r)) {
    if (!f.passes(r, *c)) continue;
    kill(r, *c);
    ++killed;
  }
  if (!old_style) return r.reply.integer(killed);
  killed > 0 ? r.reply.ok() : r.reply.error("ERR No such client");
}

namespace {

// Reads ON or OFF. Writes an error and returns false on any other word.
bool read_switch(Request& r, bool& value) {
  const bool on = equals_ignore_case(r.arg(2), "ON");
  if (!on && !equals_ignore_case(r.arg(2), "OFF")) return reply_syntax_error(r), false;
  value = on;
  return true;
}

}  // namespace

// The server evicts no client and keeps no access times. CLIENT LIST shows both settings; they have no
// other effect.
void cmd_client_no_evict(Request& r) {
  if (read_switch(r, r.c.no_evict)) r.reply.ok();
}
void cmd_client_no_touch(Request& r) {
  if (read_switch(r, r.c.no_touch)) r.reply.ok();
}

void cmd_client_unblock(Request& r) {
  if (r.argc() > 4) return reply_subcommand_syntax(r);
  bool with_error = false;
  if (r.argc() == 4) {
    with_error = equals_ignore_case(r.arg(3), "ERROR");
    if (!with_error && !equals_ignore_case(r.arg(3), "TIMEOUT")) {
      return r.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  const auto id = parse_int(r.arg(2));
  if (!id) return reply_not_an_integer(r);
  Conn* c = r.s().conns.find_serial(static_cast<uint64_t>(*id));
  if (c == nullptr || c->blocked_on == nullptr) return r.reply.integer(0);
  if (with_error) {
    mark_dirty(r.ctx, *c);
    const size_t answered = c->out.size();
    Reply(c->out, c->protocol).error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    r.s().log.record_failure(*c->last_command, c->out.view().substr(answered), false);
    cancel_wait(r.ctx, c->blocked_on, WaitEnd::kUnblocked);
  } else {
    end_wait_by_timeout(r.ctx, c->blocked_on, WaitEnd::kUnblocked);
  }
  r.reply.integer(1);
}

void cmd_client_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "GETNAME",
      "    Return the name of the current connection.",
      "ID",
      "    Return the ID of the current connection.",
      "INFO",
      "    Return information about the current client connection.",
      "KILL <ip:port>",
      "    Kill connection made from <ip:port>.",
      "KILL <option> <value> [<option> <value> [...]]",
      "    Kill connections. Options are:",
      "    * ADDR (<ip:port>|<unixsocket>:0)",
      "      Kill connections made from the specified address",
      "    * LADDR (<ip:port>|<unixsocket>:0)",
      "      Kill connections made to specified local address",
      "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
      "      Kill connections by type.",
      "    * USER <username>",
      "      Kill connections authenticated by <username>.",
      "    * SKIPME (YES|NO)",
      "      Skip killing current connection (default: yes).",
      "    * ID <client-id>",
      "      Kill connections by client id.",
      "LIST [options ...]",
      "    Return information about client connections. Options:",
      "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
      "      Return clients of specified type.",
      "    * ID <client-id> [<client-id> ...]",
      "      Return clients of specified IDs only.",
      "SETINFO <LIB-NAME|LIB-VER> <value>",
      "    Name the client library of the current connection.",
      "SETNAME <name>",
      "    Assign the name <name> to the current connection.",
      "UNBLOCK <clientid> [TIMEOUT|ERROR]",
      "    Unblock the specified blocked client.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
