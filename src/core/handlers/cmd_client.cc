// CLIENT: names, lists and ends of connections.
#include <algorithm>
#include <string>
#include <vector>

#include "core/command/command.h"
#include "core/command/handlers.h"
#include "core/events/describe_client.h"
#include "core/lock/locks.h"

namespace holdfast {

namespace {

// Redis's letters for what a connection is and does.
std::string flags_of(const Conn& c) {
  std::string flags;
  if (c.monitor) flags += 'O';
  if (c.subscriptions() > 0) flags += 'P';
  if (c.transaction != nullptr) flags += 'x';
  if (c.blocked_on != nullptr || c.postponed.count() > 0) flags += 'b';
  if (c.tracking != nullptr) flags += c.tracking->bcast ? "tB" : "t";
  if (c.tracking != nullptr && c.tracking->redirect_broken) flags += 'R';
  if (c.watch_broken) flags += 'd';
  if (c.closing) flags += 'A';
  if (c.no_evict) flags += 'e';
  if (c.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

void add(std::string& line, std::string_view name, std::string_view value) {
  if (!line.empty()) line += ' ';
  line.append(name).append("=").append(value);
}
void add(std::string& line, std::string_view name, int64_t value) {
  add(line, name, std::to_string(value));
}
void add(std::string& line, std::string_view name, size_t value) { add(line, name, std::to_string(value)); }

}  // namespace

std::string wrong_name(std::string_view text, std::string_view what) {
  const std::string start = "ERR " + std::string(what);
  if (!std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; }))
    return start + " cannot contain spaces, newlines or special characters.";
  if (text.size() <= kMaxNameBytes) return "";
  return start + " cannot be longer than " + std::to_string(kMaxNameBytes) + " bytes.";
}

std::string describe_client(const Turn& t, const Conn& c) {
  const Transaction* multi = c.transaction.get();
  std::string s;
  add(s, "id", static_cast<size_t>(c.id.serial));
  add(s, "addr", c.peer);
  add(s, "laddr", c.local);
  add(s, "fd", int64_t{-1});
  add(s, "name", c.name);
  add(s, "age", (t.now.mono - c.opened).count / 1000);
  add(s, "idle", (t.now.mono - c.last_active).count / 1000);
  add(s, "flags", flags_of(c));
  add(s, "db", int64_t{t.s.db_name[c.db]});
  add(s, "sub", c.channels.size());
  add(s, "psub", c.patterns.size());
  add(s, "ssub", c.shard_channels.size());
  add(s, "multi", multi == nullptr ? int64_t{-1} : static_cast<int64_t>(multi->requests.count()));
  add(s, "qbuf", c.unparsed_bytes);
  add(s, "qbuf-free", size_t{0});
  add(s, "argv-mem", size_t{0});
  add(s, "multi-mem", static_cast<size_t>(multi == nullptr ? 0 : multi->requests.bytes()));
  add(s, "rbs", c.out.capacity());
  add(s, "rbp", c.out.size());
  add(s, "obl", c.out.size());
  add(s, "oll", size_t{0});
  add(s, "omem", size_t{0});
  add(s, "tot-mem", sizeof(Conn) + c.unparsed_bytes + c.out.capacity() + c.later.capacity());
  add(s, "events", "r");
  add(s, "cmd", c.last_command == nullptr ? "NULL" : c.last_command->name);
  add(s, "user", c.user->name);
  add(s, "redir", c.tracking == nullptr ? int64_t{-1} : static_cast<int64_t>(c.tracking->redirect));
  add(s, "resp", int64_t{c.protocol});
  add(s, "lib-name", c.lib_name);
  add(s, "lib-ver", c.lib_version);
  add(s, "watch", c.watched.size());
  add(s, "waits", c.waiters.size());
  add(s, "session-holds", c.session_holds.size());
  return s;
}

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
  for (const Conn* c : conns) text += describe_client(r.t, *c) + "\n";
  r.reply.verbatim(text);
}

void kill(Request& r, Conn& c) {
  c.closing = true;
  r.t.fx.closes.push_back(c.id);
}

// CLIENT KILL's filters; a connection must pass all that are given.
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
    const bool known = std::ranges::any_of(kTypes, [&](auto t) { return equals_ignore_case(value, t); });
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
  set_text(r.s(), r.c.name, r.arg(2));
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
  set_text(r.s(), name ? r.c.lib_name : r.c.lib_version, r.arg(3));
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

void cmd_client_info(Request& r) { r.reply.verbatim(describe_client(r.t, r.c) + "\n"); }

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

// ON or OFF. False: an error has been written.
bool read_switch(Request& r, bool& value) {
  const bool on = equals_ignore_case(r.arg(2), "ON");
  if (!on && !equals_ignore_case(r.arg(2), "OFF")) return reply_syntax_error(r), false;
  value = on;
  return true;
}

}  // namespace

// Nobody is ever evicted, and no access times are kept: the two are shown by CLIENT LIST, and that is all.
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
    mark_dirty(r.t, *c);
    Reply(c->out, c->protocol).error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    cancel_wait(r.t, c->blocked_on);
  } else {
    end_wait_by_timeout(r.t, c->blocked_on);
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
