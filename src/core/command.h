// The command table: one row a command, and what a handler is given. A command is added in two edits, its
// row in commands.cc and its handler; all that COMMAND answers comes from the rows.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/parse.h"
#include "core/state.h"

namespace holdfast {

struct Command;

// One request being run. The handler parses all, checks all, changes once, replies once.
struct Request {
  Turn& t;
  Conn& c;
  const Command& command;
  std::span<const std::string_view> argv;
  Reply reply;
  bool may_block;  // not inside a transaction

  EngineState& s() const { return t.s; }
  Keyspace& keys() const { return t.keys(c.db); }
  size_t argc() const { return argv.size(); }
  std::string_view arg(size_t i) const { return argv[i]; }
  TimeMs now() const { return t.now.mono; }
};

enum CommandFlag : uint32_t {
  kWrite = 1U << 0U,
  kReadOnly = 1U << 1U,
  kDenyOom = 1U << 2U,  // may grow memory: refused beyond the limit
  kAdmin = 1U << 3U,
  kFast = 1U << 4U,  // O(1) or O(log n)
  kBlocking = 1U << 5U,
  kInMulti = 1U << 6U,     // run, not queued, between MULTI and EXEC
  kConnection = 1U << 7U,  // the ACL category of what concerns the connection only
  kDangerous = 1U << 8U,   // the ACL category of what an application should not be able to do
};

using Handler = void (*)(Request&);

struct Command {
  std::string_view name;  // lower-case; of a subcommand: "locks|info"
  Handler handler;        // null: a container, whose subcommands do the work
  int arity;              // as Redis counts it: with the name(s); negative: at least
  uint32_t flags;
  int first_key, last_key, key_step;  // 0: none; last_key -1: to the end
  std::string_view group;
  std::string_view since;
  std::string_view complexity;
  std::string_view summary;
  std::string_view syntax;  // see syntax.h

  bool is_subcommand() const { return name.find('|') != std::string_view::npos; }
  std::string_view container() const { return name.substr(0, name.find('|')); }
};

// All rows, sorted by name.
std::span<const Command> all_commands();
// Without regard to case; null where there is none. `name` may be "locks|info".
const Command* find_command(std::string_view name);
// The row that runs a request: of a container, its subcommand's. Null and an error written where there is
// none or the number of arguments is wrong.
const Command* resolve_command(std::span<const std::string_view> argv, Reply& reply);

// Runs a request whose command has been resolved. Not for what a transaction has to queue.
void run_command(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv,
                 bool may_block);

// Reads an argument that must be a number in a range; where it is none, writes an error that names `what`.
std::optional<int64_t> read_number(Request& r, size_t i, std::string_view what, int64_t lowest,
                                   int64_t highest);

// Errors that several handlers give.
void reply_syntax_error(Request& r);
void reply_wrong_arity(Request& r);
void reply_not_an_integer(Request& r);
void reply_wrong_type(Request& r);

// The lines of "X HELP", with Redis's first and last.
void reply_help(Request& r, std::span<const std::string_view> lines);

// handlers, by file
void cmd_lock(Request&), cmd_renew(Request&), cmd_unlock(Request&), cmd_fence(Request&);  // cmd_lock.cc
void cmd_locks_info(Request&), cmd_locks_list(Request&), cmd_locks_owned(Request&),
    cmd_locks_check(Request&), cmd_locks_break(Request&), cmd_locks_revoke(Request&),
    cmd_locks_help(Request&);  // cmd_locks.cc
void cmd_lease_grant(Request&), cmd_lease_confirm(Request&), cmd_lease_cancel(Request&),
    cmd_lease_renew(Request&), cmd_lease_info(Request&), cmd_lease_help(Request&);  // cmd_lease.cc
void cmd_set(Request&), cmd_get(Request&);                                          // cmd_string.cc
void cmd_del(Request&), cmd_exists(Request&), cmd_type(Request&), cmd_keys(Request&), cmd_scan(Request&),
    cmd_dbsize(Request&), cmd_flushall(Request&), cmd_flushdb(Request&);  // cmd_key.cc
void cmd_ttl(Request&), cmd_pttl(Request&), cmd_expire(Request&), cmd_pexpire(Request&),
    cmd_persist(Request&);  // cmd_expire.cc
void cmd_ping(Request&), cmd_echo(Request&), cmd_hello(Request&), cmd_auth(Request&), cmd_select(Request&),
    cmd_quit(Request&), cmd_reset(Request&);  // cmd_connection.cc
void cmd_client_id(Request&), cmd_client_setname(Request&), cmd_client_getname(Request&),
    cmd_client_setinfo(Request&), cmd_client_list(Request&), cmd_client_info(Request&),
    cmd_client_kill(Request&), cmd_client_unblock(Request&),
    cmd_client_help(Request&);  // cmd_client.cc
void cmd_command(Request&), cmd_command_count(Request&), cmd_command_info(Request&),
    cmd_command_docs(Request&), cmd_command_list(Request&), cmd_command_getkeys(Request&),
    cmd_command_help(Request&);  // cmd_command.cc
void cmd_info(Request&), cmd_time(Request&), cmd_config_get(Request&),
    cmd_config_help(Request&);                                        // cmd_server.cc
void cmd_multi(Request&), cmd_exec(Request&), cmd_discard(Request&);  // cmd_transaction.cc

}  // namespace holdfast
