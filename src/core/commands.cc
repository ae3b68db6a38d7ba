// The command table, and what finds a row in it.
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cassert>
#include <string>

#include "core/command.h"

namespace holdfast {

namespace {

constexpr uint32_t kConn = kConnection | kFast;

// Columns: name, handler, arity, flags, first key, last key, step, group, since, complexity, summary,
// syntax. Sorted by name. `since` is Redis's version for its commands, and Holdfast's for its own.
constexpr Command kCommands[] = {
    {"auth", cmd_auth, -2, kConn, 0, 0, 0, "connection", "1.0.0", "O(1)", "Authenticates the connection.",
     "[username] password"},
    {"client", nullptr, -2, kConnection, 0, 0, 0, "connection", "2.4.0", "Depends on subcommand.",
     "A container for client connection commands.", ""},
    {"client|getname", cmd_client_getname, 2, kConn, 0, 0, 0, "connection", "2.6.9", "O(1)",
     "Returns the name of the connection.", ""},
    {"client|help", cmd_client_help, 2, kConnection, 0, 0, 0, "connection", "5.0.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"client|id", cmd_client_id, 2, kConn, 0, 0, 0, "connection", "5.0.0", "O(1)",
     "Returns the unique client ID of the connection.", ""},
    {"client|info", cmd_client_info, 2, kConnection, 0, 0, 0, "connection", "6.2.0", "O(1)",
     "Returns information about the connection.", ""},
    {"client|kill", cmd_client_kill, -3, kAdmin | kDangerous | kConnection, 0, 0, 0, "connection", "2.4.0",
     "O(N) where N is the number of client connections", "Terminates open connections.",
     "<address | [ID client-id] [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] [USER username] [ADDR "
     "address] "
     "[LADDR address] [SKIPME yes/no]>"},
    {"client|list", cmd_client_list, -2, kAdmin | kDangerous | kConnection, 0, 0, 0, "connection", "2.4.0",
     "O(N) where N is the number of client connections", "Lists open connections.",
     "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]"},
    {"client|setinfo", cmd_client_setinfo, 4, kConn, 0, 0, 0, "connection", "7.2.0", "O(1)",
     "Sets information specific to the client or connection.", "<LIB-NAME libname | LIB-VER libver>"},
    {"client|setname", cmd_client_setname, 3, kConn, 0, 0, 0, "connection", "2.6.9", "O(1)",
     "Sets the connection name.", "connection-name"},
    {"client|unblock", cmd_client_unblock, -3, kAdmin | kDangerous | kConnection | kFast, 0, 0, 0,
     "connection", "5.0.0", "O(log N) where N is the number of client connections",
     "Unblocks a client that waits for a lock from another connection.", "client-id [TIMEOUT | ERROR]"},
    {"command", cmd_command, -1, kConnection, 0, 0, 0, "server", "2.8.13",
     "O(N) where N is the total number of commands", "Returns detailed information about all commands.",
     ""},
    {"command|count", cmd_command_count, 2, kConnection, 0, 0, 0, "server", "2.8.13", "O(1)",
     "Returns a count of commands.", ""},
    {"command|docs", cmd_command_docs, -2, kConnection, 0, 0, 0, "server", "7.0.0",
     "O(N) where N is the number of commands to look up", "Returns documentary information about commands.",
     "[command-name [command-name ...]]"},
    {"command|getkeys", cmd_command_getkeys, -4, kConnection, 0, 0, 0, "server", "2.8.13",
     "O(N) where N is the number of arguments to the command",
     "Extracts the key names from an arbitrary command.", "command [arg [arg ...]]"},
    {"command|help", cmd_command_help, 2, kConnection, 0, 0, 0, "server", "5.0.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"command|info", cmd_command_info, -2, kConnection, 0, 0, 0, "server", "2.8.13",
     "O(N) where N is the number of commands to look up",
     "Returns information about one, multiple or all commands.", "[command-name [command-name ...]]"},
    {"command|list", cmd_command_list, -2, kConnection, 0, 0, 0, "server", "7.0.0",
     "O(N) where N is the total number of commands", "Returns a list of command names.",
     "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"},
    {"config", nullptr, -2, 0, 0, 0, 0, "server", "2.0.0", "Depends on subcommand.",
     "A container for server configuration commands.", ""},
    {"config|get", cmd_config_get, -3, kAdmin | kDangerous, 0, 0, 0, "server", "2.0.0",
     "O(N) where N is the number of configuration parameters provided",
     "Returns the effective values of configuration parameters.", "parameter [parameter ...]"},
    {"config|help", cmd_config_help, 2, kAdmin | kDangerous, 0, 0, 0, "server", "5.0.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"dbsize", cmd_dbsize, 1, kReadOnly | kFast, 0, 0, 0, "server", "1.0.0", "O(1)",
     "Returns the number of keys in the database.", ""},
    {"del", cmd_del, -2, kWrite, 1, -1, 1, "generic", "1.0.0", "O(N) where N is the number of keys",
     "Deletes one or more keys; waiters of their locks are served.", "key [key ...]"},
    {"discard", cmd_discard, 1, kFast | kInMulti, 0, 0, 0, "transactions", "2.0.0",
     "O(N) where N is the number of queued commands", "Discards a transaction.", ""},
    {"echo", cmd_echo, 2, kConn, 0, 0, 0, "connection", "1.0.0", "O(1)", "Returns the given string.",
     "message"},
    {"exec", cmd_exec, 1, kInMulti, 0, 0, 0, "transactions", "1.2.0",
     "Depends on commands in the transaction", "Executes all commands in a transaction.", ""},
    {"exists", cmd_exists, -2, kReadOnly | kFast, 1, -1, 1, "generic", "1.0.0",
     "O(N) where N is the number of keys", "Determines whether one or more keys exist.", "key [key ...]"},
    {"expire", cmd_expire, -3, kWrite | kFast, 1, 1, 1, "generic", "1.0.0", "O(1)",
     "Sets the expiration time of a key in seconds.", "key seconds [NX | XX | GT | LT]"},
    {"fence", cmd_fence, 4, kWrite | kFast, 1, 1, 1, "lock", "0.1.0", "O(1); O(log N) with N holders",
     "Raises the fencing token of a hold to at least the given one.", "key owner token"},
    {"flushall", cmd_flushall, -1, kWrite | kDangerous, 0, 0, 0, "server", "1.0.0",
     "O(N) with N keys that are waited for; memory is given back in steps",
     "Removes all keys from all databases.", "[ASYNC | SYNC]"},
    {"flushdb", cmd_flushdb, -1, kWrite | kDangerous, 0, 0, 0, "server", "1.0.0",
     "O(N) with N keys that are waited for; memory is given back in steps",
     "Removes all keys from the database.", "[ASYNC | SYNC]"},
    {"get", cmd_get, 2, kReadOnly | kFast, 1, 1, 1, "string", "1.0.0", "O(1)",
     "Returns the string value of a key: of an exclusive lock, its owner.", "key"},
    {"hello", cmd_hello, -1, kConn, 0, 0, 0, "connection", "6.0.0", "O(1)", "Handshakes with the server.",
     "[protover [AUTH <username password>] [SETNAME clientname]]"},
    {"info", cmd_info, -1, kDangerous, 0, 0, 0, "server", "1.0.0",
     "O(N) where N is the number of connections", "Returns information and statistics about the server.",
     "[section [section ...]]"},
    {"keys", cmd_keys, 2, kReadOnly | kDangerous, 0, 0, 0, "generic", "1.0.0",
     "O(N) where N is the number of keys", "Returns all key names that match a pattern.", "pattern"},
    {"lease", nullptr, -2, 0, 0, 0, 0, "lock", "0.1.0", "Depends on subcommand.",
     "A container for commands on leases: several keys at once, all or none.", ""},
    {"lease|cancel", cmd_lease_cancel, 3, kWrite, 0, 0, 0, "lock", "0.1.0", "O(N) with N keys of the lease",
     "Takes the keys of a lease back.", "id"},
    {"lease|confirm", cmd_lease_confirm, 3, kWrite, 0, 0, 0, "lock", "0.1.0",
     "O(N) with N keys of the lease", "Makes the keys of a lease permanent.", "id"},
    {"lease|grant", cmd_lease_grant, -6, kWrite | kDenyOom, 4, -1, 2, "lock", "0.1.0", "O(N) with N keys",
     "Puts values under several free keys for a while, all or none.", "id ttl key value [key value ...]"},
    {"lease|help", cmd_lease_help, 2, 0, 0, 0, 0, "lock", "0.1.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"lease|info", cmd_lease_info, 3, kReadOnly, 0, 0, 0, "lock", "0.1.0", "O(N) with N keys of the lease",
     "Returns state, time left, token and keys of a lease.", "id"},
    {"lease|renew", cmd_lease_renew, -3, kWrite, 0, 0, 0, "lock", "0.1.0", "O(N) with N keys of the lease",
     "Lets the time of a lease start anew.", "id [ttl]"},
    {"lock", cmd_lock, -4, kWrite | kDenyOom | kFast | kBlocking, 1, 1, 1, "lock", "0.1.0",
     "O(1); O(log N) with N holders or waiters",
     "Takes a lock, or waits for it; returns owner and fencing token, or null.",
     "key owner ttl [SHARED | LIMIT limit] [WAIT milliseconds [ASYNC]] [SESSION] [DELAY milliseconds] "
     "[TOKEN hint]"},
    {"locks", nullptr, -2, 0, 0, 0, 0, "lock", "0.1.0", "Depends on subcommand.",
     "A container for commands that look at locks or end them by force.", ""},
    {"locks|break", cmd_locks_break, 3, kWrite | kDangerous, 2, 2, 1, "lock", "0.1.0",
     "O(N) with N holders", "Ends all holds of a key by force; returns their number.", "key"},
    {"locks|check", cmd_locks_check, 4, kReadOnly | kFast, 2, 2, 1, "lock", "0.1.0",
     "O(1); O(log N) with N holders", "Tells whether a present holder of the key has the token.",
     "key token"},
    {"locks|help", cmd_locks_help, 2, 0, 0, 0, 0, "lock", "0.1.0", "O(1)",
     "Returns helpful text about the different subcommands.", ""},
    {"locks|info", cmd_locks_info, 3, kReadOnly, 2, 2, 1, "lock", "0.1.0",
     "O(N) with N holders and waiters", "Returns the holders and waiters of a key.", "key"},
    {"locks|list", cmd_locks_list, -3, kReadOnly, 0, 0, 0, "lock", "0.1.0",
     "O(1) a call; O(N) for all, with N keys", "Pages through the held keys.",
     "cursor [MATCH pattern] [COUNT count]"},
    {"locks|owned", cmd_locks_owned, 3, kReadOnly | kDangerous, 0, 0, 0, "lock", "0.1.0",
     "O(N) with N keys", "Returns all holds of an owner.", "owner"},
    {"locks|revoke", cmd_locks_revoke, 3, kWrite, 2, 2, 1, "lock", "0.1.0", "O(N) with N holders",
     "Asks the holders of a key to release it; returns their number.", "key"},
    {"multi", cmd_multi, 1, kFast | kInMulti, 0, 0, 0, "transactions", "1.2.0", "O(1)",
     "Starts a transaction.", ""},
    {"persist", cmd_persist, 2, kWrite | kFast, 1, 1, 1, "generic", "2.2.0", "O(1)",
     "Removes the expiration time of a key.", "key"},
    {"pexpire", cmd_pexpire, -3, kWrite | kFast, 1, 1, 1, "generic", "2.6.0", "O(1)",
     "Sets the expiration time of a key in milliseconds.", "key milliseconds [NX | XX | GT | LT]"},
    {"ping", cmd_ping, -1, kConn, 0, 0, 0, "connection", "1.0.0", "O(1)",
     "Returns the server's liveliness response.", "[message]"},
    {"pttl", cmd_pttl, 2, kReadOnly | kFast, 1, 1, 1, "generic", "2.6.0", "O(1)",
     "Returns the expiration time in milliseconds of a key.", "key"},
    {"quit", cmd_quit, -1, kConn | kInMulti, 0, 0, 0, "connection", "1.0.0", "O(1)",
     "Closes the connection.", ""},
    {"renew", cmd_renew, -3, kWrite | kFast, 1, 1, 1, "lock", "0.1.0", "O(1); O(log N) with N holders",
     "Lets the time of a hold start anew: 1 done, 0 nobody holds the key, -1 another does.",
     "key owner [ttl]"},
    {"reset", cmd_reset, 1, kConn | kInMulti, 0, 0, 0, "connection", "6.2.0", "O(1)",
     "Resets the connection.", ""},
    {"scan", cmd_scan, -2, kReadOnly, 0, 0, 0, "generic", "2.8.0", "O(1) a call; O(N) for all, with N keys",
     "Iterates over the key names in the database.", "cursor [MATCH pattern] [COUNT count] [TYPE type]"},
    {"select", cmd_select, 2, kConn, 0, 0, 0, "connection", "1.0.0", "O(1)",
     "Changes the selected database.", "index"},
    {"set", cmd_set, -3, kWrite | kDenyOom, 1, 1, 1, "string", "1.0.0", "O(1)",
     "Sets the string value of a key; with NX and an expiry, takes an exclusive lock.",
     "key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT "
     "unix-time-seconds | "
     "PXAT unix-time-milliseconds | KEEPTTL]"},
    {"time", cmd_time, 1, kFast, 0, 0, 0, "server", "2.6.0", "O(1)", "Returns the server time.", ""},
    {"ttl", cmd_ttl, 2, kReadOnly | kFast, 1, 1, 1, "generic", "1.0.0", "O(1)",
     "Returns the expiration time in seconds of a key.", "key"},
    {"type", cmd_type, 2, kReadOnly | kFast, 1, 1, 1, "generic", "1.0.0", "O(1)",
     "Determines the type of the value stored at a key.", "key"},
    {"unlink", cmd_del, -2, kWrite | kFast, 1, -1, 1, "generic", "4.0.0",
     "O(N) where N is the number of keys", "Deletes one or more keys; the same as DEL.", "key [key ...]"},
    {"unlock", cmd_unlock, 3, kWrite | kFast, 1, 1, 1, "lock", "0.1.0",
     "O(1); O(log N) with N holders or waiters",
     "Releases a hold: 1 done, 0 nobody holds the key, -1 another does.", "key owner"},
};

constexpr size_t kMaxNameBytes = 32;

struct NameIndex {
  NameIndex() {
    for (const Command& c : kCommands) by_name.emplace(c.name, &c);
  }
  absl::flat_hash_map<std::string_view, const Command*> by_name;
};

const Command* find_lower(std::string_view name) {
  static const NameIndex kIndex;
  const auto it = kIndex.by_name.find(name);
  return it == kIndex.by_name.end() ? nullptr : it->second;
}

const Command* find_subcommand(const Command& container, std::string_view sub) {
  std::array<char, 2 * kMaxNameBytes> name;
  if (sub.size() > kMaxNameBytes) return nullptr;
  char* end = std::copy(container.name.begin(), container.name.end(), name.begin());
  *end++ = '|';
  end = std::transform(sub.begin(), sub.end(), end, ascii_lower);
  return find_lower({name.data(), static_cast<size_t>(end - name.data())});
}

bool arity_fits(const Command& c, size_t argc) {
  const auto n = static_cast<int>(argc);
  return c.arity < 0 ? n >= -c.arity : n == c.arity;
}

std::string wrong_arity_text(const Command& c) {
  return std::string("ERR wrong number of arguments for '").append(c.name).append("' command");
}

std::string upper(std::string_view text) {
  std::string s(text);
  for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return s;
}

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  std::array<char, 2 * kMaxNameBytes> lower;
  if (name.size() > lower.size()) return nullptr;
  std::transform(name.begin(), name.end(), lower.begin(), ascii_lower);
  return find_lower({lower.data(), name.size()});
}

const Command* resolve_command(std::span<const std::string_view> argv, Reply& reply) {
  const Command* c = find_command(argv[0]);
  if (c == nullptr || c->is_subcommand()) {
    reply.error(unknown_command_text(argv));
    return nullptr;
  }
  const bool has_subcommands = c->handler == nullptr || c->handler == cmd_command;
  if (has_subcommands && argv.size() > 1) {
    const Command* sub = find_subcommand(*c, argv[1]);
    if (sub == nullptr) {
      const std::string shown(argv[1].substr(0, 128));
      reply.error("ERR unknown subcommand '" + shown + "'. Try " + upper(c->name) + " HELP.");
      return nullptr;
    }
    c = sub;
  }
  if (c->handler == nullptr || !arity_fits(*c, argv.size())) {
    // Redis ends a transaction with this where EXEC itself is malformed.
    const bool exec = c->handler == cmd_exec;
    const std::string text = wrong_arity_text(*c);
    reply.error(exec ? "EXECABORT Transaction discarded because of: " + text.substr(4) : text);
    return nullptr;
  }
  return c;
}

std::optional<int64_t> read_number(Request& r, size_t i, std::string_view what, int64_t lowest,
                                   int64_t highest) {
  const auto value = parse_int_in(r.arg(i), lowest, highest);
  if (!value) {
    r.reply.error(std::string("ERR ").append(what).append(" must be an integer from ") +
                  std::to_string(lowest) + " to " + std::to_string(highest));
  }
  return value;
}

void reply_wrong_arity(Request& r) { r.reply.error(wrong_arity_text(r.command)); }
void reply_syntax_error(Request& r) { r.reply.error("ERR syntax error"); }
void reply_not_an_integer(Request& r) { r.reply.error("ERR value is not an integer or out of range"); }
void reply_wrong_type(Request& r) {
  r.reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

void reply_help(Request& r, std::span<const std::string_view> lines) {
  r.reply.array(lines.size() + 3);
  r.reply.simple(upper(r.command.container()) +
                 " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const std::string_view line : lines) r.reply.simple(line);
  r.reply.simple("HELP");
  r.reply.simple("    Print this help.");
}

}  // namespace holdfast
