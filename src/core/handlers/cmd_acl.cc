// ACL: shows, changes, loads and saves users, and shows their denied requests.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/categories.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the "
    "ACL "
    "SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in "
    "order to store users in the Redis configuration.";

void write_permissions(Reply& reply, const AclSelector& s) {
  reply.bulk("commands");
  reply.bulk(describe_commands(s));
  reply.bulk("keys");
  reply.bulk(describe_keys(s));
  reply.bulk("channels");
  reply.bulk(describe_channels(s));
}

void write_user(Reply& reply, const AclUser& user) {
  reply.map(6);
  reply.bulk("flags");
  reply.set(user.nopass ? 2 : 1);
  reply.bulk(user.enabled ? "on" : "off");
  if (user.nopass) reply.bulk("nopass");
  reply.bulk("passwords");
  reply.array(user.passwords.size());
  for (const std::string& hash : user.passwords) reply.bulk(hash);
  write_permissions(reply, user.root);
  reply.bulk("selectors");
  reply.array(user.selectors.size());
  for (const AclSelector& s : user.selectors) {
    reply.map(3);
    write_permissions(reply, s);
  }
}

constexpr std::string_view kReasons[] = {"", "command", "key", "auth", "channel"};
constexpr std::string_view kContexts[] = {"toplevel", "multi", "lua"};

void write_entry(Request& r, const AclLogEntry& e) {
  r.reply.map(7);
  r.reply.bulk("count");
  r.reply.integer(e.count);
  r.reply.bulk("reason");
  r.reply.bulk(kReasons[static_cast<size_t>(e.why)]);
  r.reply.bulk("context");
  r.reply.bulk(kContexts[static_cast<size_t>(e.context)]);
  r.reply.bulk("object");
  r.reply.bulk(e.object);
  r.reply.bulk("username");
  r.reply.bulk(e.username);
  r.reply.bulk("age-seconds");
  r.reply.number(static_cast<double>((r.now() - e.at).count) / 1000);
  r.reply.bulk("client-info");
  r.reply.bulk(e.client);
}

bool is_user_name(std::string_view name) {
  return std::ranges::none_of(name,
                              [](char c) { return c == ' ' || c == '\0' || (c >= '\t' && c <= '\r'); });
}

}  // namespace

void cmd_acl_whoami(Request& r) { r.reply.bulk(r.c.user->name); }

void cmd_acl_users(Request& r) {
  r.reply.array(r.s().acl.users().size());
  for (const auto& [name, user] : r.s().acl.users()) r.reply.bulk(name);
}

void cmd_acl_list(Request& r) {
  const std::vector<std::string> lines = r.s().acl.lines();
  r.reply.array(lines.size());
  for (const std::string& line : lines) r.reply.bulk("user " + line);
}

void cmd_acl_getuser(Request& r) {
  const AclUser* user = r.s().acl.find(r.arg(2));
  user == nullptr ? r.reply.null() : write_user(r.reply, *user);
}

void cmd_acl_setuser(Request& r) {
  // Redis accepts an empty name, but no line of a file can contain it.
  if (r.arg(2).empty()) return r.reply.error("ERR Usernames can't be empty");
  if (!is_user_name(r.arg(2))) {
    return r.reply.error("ERR Usernames can't contain spaces or null characters");
  }
  std::vector<std::string> rules;
  if (!join_selectors(r.argv.subspan(3), rules)) {
    return r.reply.error("ERR Unmatched parenthesis in acl selector starting at '" + rules.back() + "'.");
  }
  AclUser* old = r.s().acl.find(r.arg(2));
  AclUser user;
  if (old != nullptr) user = *old;
  const AclRefusal refusal = set_user(user, std::vector<std::string_view>(rules.begin(), rules.end()));
  if (!refusal.why.empty()) {
    return r.reply.error("ERR Error in ACL SETUSER modifier '" + refusal.rule + "': " + refusal.why);
  }
  audit(r);
  user.name = r.arg(2);
  (old != nullptr ? *old : r.s().acl.add(r.arg(2))) = std::move(user);
  apply_users(r.ctx);
  r.reply.ok();
}

void cmd_acl_deluser(Request& r) {
  const auto names = r.argv.subspan(2);
  if (std::ranges::find(names, "default") != names.end()) {
    return r.reply.error("ERR The 'default' user cannot be removed");
  }
  audit(r);
  int64_t removed = 0;
  for (const std::string_view name : names) removed += r.s().acl.remove(name) ? 1 : 0;
  apply_users(r.ctx);
  r.reply.integer(removed);
}

void cmd_acl_load(Request& r) {
  const Config& config = r.s().config;
  if (!config.acl_file.read) return r.reply.error(kNoFile);
  std::string text;
  std::string wrong = config.acl_file.read(text);
  if (wrong.empty()) wrong = r.s().acl.load(text, config.acl_source);
  if (!wrong.empty()) return r.reply.error("ERR " + wrong);
  audit(r);
  apply_users(r.ctx);
  r.reply.ok();
}

void cmd_acl_save(Request& r) {
  const AclFileHooks& file = r.s().config.acl_file;
  if (!file.write) return r.reply.error(kNoFile);
  std::string text;
  for (const std::string& line : r.s().acl.lines()) text += "user " + line + "\n";
  const std::string why = file.write(text);
  why.empty() ? r.reply.ok() : r.reply.error("ERR There was an error trying to save the ACLs: " + why);
}

void cmd_acl_cat(Request& r) {
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  std::vector<std::string_view> names;
  if (r.argc() == 2) {
    names.assign(category_names().begin(), category_names().end());
  } else {
    const auto category = category_named(r.arg(2));
    if (!category) return r.reply.error("ERR Unknown category '" + std::string(r.arg(2)) + "'");
    for (const Command& c : all_commands()) {
      if ((categories_of(c) & *category) != 0) names.push_back(c.name);
    }
  }
  r.reply.array(names.size());
  for (const std::string_view name : names) r.reply.bulk(name);
}

// Replies with random hex digits for the given number of bits.
void cmd_acl_genpass(Request& r) {
  constexpr int64_t kDefaultBits = 256;
  constexpr int64_t kMaxBits = 4096;
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  const auto bits = r.argc() == 3 ? parse_int(r.arg(2)) : kDefaultBits;
  if (!bits) return reply_not_an_integer(r);
  if (*bits <= 0 || *bits > kMaxBits) {
    return r.reply.error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up "
        "to 4096");
  }
  const auto digits = static_cast<size_t>((*bits + 3) / 4);
  std::vector<uint8_t> bytes((digits + 1) / 2);
  r.s().config.random(bytes);
  std::string password;
  append_hex(password, bytes);
  r.reply.bulk(std::string_view(password).substr(0, digits));
}

void cmd_acl_log(Request& r) {
  constexpr int64_t kDefaultCount = 10;
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  AclLog& log = r.s().acl_log;
  if (r.argc() == 3 && equals_ignore_case(r.arg(2), "RESET")) {
    log.clear();
    return r.reply.ok();
  }
  const auto count = r.argc() == 3 ? parse_int(r.arg(2)) : kDefaultCount;
  if (!count) return reply_not_an_integer(r);
  const size_t shown = *count < 0 ? 0 : std::min(log.size(), static_cast<size_t>(*count));
  r.reply.array(shown);
  for (size_t i = 0; i < shown; ++i) write_entry(r, log[i]);
}

void cmd_acl_dryrun(Request& r) {
  const AclUser* user = r.s().acl.find(r.arg(2));
  if (user == nullptr) return r.reply.error("ERR User '" + std::string(r.arg(2)) + "' not found");
  const auto argv = r.argv.subspan(3);
  const Command* command = find_row(argv);
  if (command == nullptr) return r.reply.error("ERR Command '" + std::string(argv[0]) + "' not found");
  if (!arity_fits(*command, argv.size())) {
    return r.reply.error("ERR wrong number of arguments for '" + std::string(command->name) + "' command");
  }
  const Verdict v = check_permission(r.s(), *user, *command, argv);
  v.allowed() ? r.reply.ok() : r.reply.bulk(denial_text(v, *command, argv));
}

void cmd_acl_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "CAT [<category>]",
      "    List all commands that belong to <category>, or all command categories",
      "    when no category is specified.",
      "DELUSER <username> [<username> ...]",
      "    Delete a list of users.",
      "DRYRUN <username> <command> [<arg> ...]",
      "    Returns whether the user can execute the given command without executing the command.",
      "GETUSER <username>",
      "    Get the user's details.",
      "GENPASS [<bits>]",
      "    Generate a secure 256-bit user password. The optional `bits` argument can",
      "    be used to specify a different size.",
      "LIST",
      "    Show users details in config file format.",
      "LOAD",
      "    Reload users from the ACL file.",
      "LOG [<count> | RESET]",
      "    Show the ACL log entries.",
      "SAVE",
      "    Save the current config to the ACL file.",
      "SETUSER <username> <attribute> [<attribute> ...]",
      "    Create or modify a user with the specified attributes.",
      "USERS",
      "    List all the registered usernames.",
      "WHOAMI",
      "    Return the current connection username.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
