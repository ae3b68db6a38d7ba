// COMMAND: the table, shown. redis-cli builds its hints and help from COMMAND DOCS.
#include <algorithm>
#include <string>
#include <vector>

#include "core/command.h"
#include "core/glob.h"
#include "core/handlers.h"
#include "core/syntax.h"

namespace holdfast {

namespace {

struct FlagName {
  uint32_t flag;
  std::string_view name;
};
constexpr FlagName kFlagNames[] = {
    {kWrite, "write"},
    {kReadOnly, "readonly"},
    {kDenyOom, "denyoom"},
    {kAdmin, "admin"},
    {kPubSub, "pubsub"},
    {kNoScript, "noscript"},
    {kBlocking, "blocking"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipMonitor, "skip_monitor"},
    {kSkipSlowlog, "skip_slowlog"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kAllowBusy, "allow_busy"},
    {kNoMandatoryKeys, "no_mandatory_keys"},
    {kMovableKeys, "movablekeys"},
};

std::vector<const Command*> subcommands_of(const Command& c) {
  std::vector<const Command*> found;
  for (const Command& s : all_commands()) {
    if (s.is_subcommand() && s.container() == c.name) found.push_back(&s);
  }
  return found;
}

std::vector<const Command*> top_level() {
  std::vector<const Command*> found;
  for (const Command& c : all_commands()) {
    if (!c.is_subcommand()) found.push_back(&c);
  }
  return found;
}

// The ACL categories, which follow from flags and group, in Redis's order.
std::vector<std::string> categories(const Command& c) {
  const auto has = [&c](uint32_t flag) { return (c.flags & flag) != 0; };
  std::vector<std::string> names;
  const auto add = [&names](bool belongs, std::string_view name) {
    if (belongs) names.emplace_back(name);
  };
  add(has(kKeyspace), "@keyspace");
  add(has(kReadOnly) && !has(kMovableKeys), "@read");
  add(has(kWrite), "@write");
  add(c.group == "string", "@string");
  add(c.group == "hash", "@hash");
  add(c.group == "pubsub", "@pubsub");
  add(has(kAdmin), "@admin");
  add(has(kFast), "@fast");
  add(!has(kFast), "@slow");
  add(has(kBlocking), "@blocking");
  add(has(kDangerous), "@dangerous");
  add(has(kConnection), "@connection");
  add(c.group == "transactions", "@transaction");
  add(c.group == "scripting", "@scripting");
  add(c.group == "lock", "@lock");
  return names;
}

void write_pair(Reply& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}
void write_pair(Reply& reply, std::string_view name, int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}

// The key specification that says the same as first, last and step.
void write_counted_key_specs(Reply& reply) {
  reply.array(1);
  reply.map(3);
  reply.bulk("flags");
  reply.set(3);
  for (const std::string_view flag : {"RW", "access", "update"}) reply.simple(flag);
  reply.bulk("begin_search");
  reply.map(2);
  write_pair(reply, "type", "index");
  reply.bulk("spec");
  reply.map(1);
  write_pair(reply, "index", 2);
  reply.bulk("find_keys");
  reply.map(2);
  write_pair(reply, "type", "keynum");
  reply.bulk("spec");
  reply.map(3);
  write_pair(reply, "keynumidx", 0);
  write_pair(reply, "firstkey", 1);
  write_pair(reply, "keystep", 1);
}

void write_key_specs(Reply& reply, const Command& c) {
  if ((c.flags & kMovableKeys) != 0) return write_counted_key_specs(reply);
  reply.array(c.first_key == 0 ? 0 : 1);
  if (c.first_key == 0) return;
  reply.map(3);
  reply.bulk("flags");
  reply.set(1);
  reply.simple((c.flags & kWrite) != 0 ? "RW" : "RO");
  reply.bulk("begin_search");
  reply.map(2);
  write_pair(reply, "type", "index");
  reply.bulk("spec");
  reply.map(1);
  write_pair(reply, "index", c.first_key);
  reply.bulk("find_keys");
  reply.map(2);
  write_pair(reply, "type", "range");
  reply.bulk("spec");
  reply.map(3);
  write_pair(reply, "lastkey", c.last_key < 0 ? c.last_key : c.last_key - c.first_key);
  write_pair(reply, "keystep", c.key_step);
  write_pair(reply, "limit", 0);
}

void write_info(Reply& reply, const Command& c) {
  reply.array(10);
  reply.bulk(c.name);
  reply.integer(c.arity);
  const auto flagged = [&](const FlagName& f) { return (c.flags & f.flag) != 0; };
  reply.set(static_cast<size_t>(std::ranges::count_if(kFlagNames, flagged)));
  for (const FlagName& f : kFlagNames) {
    if (flagged(f)) reply.simple(f.name);
  }
  reply.integer(c.first_key);
  reply.integer(c.last_key);
  reply.integer(c.key_step);
  const std::vector<std::string> names = categories(c);
  reply.set(names.size());
  for (const std::string& name : names) reply.simple(name);
  reply.array(0);  // tips
  write_key_specs(reply, c);
  const auto subcommands = subcommands_of(c);
  reply.array(subcommands.size());
  for (const Command* s : subcommands) write_info(reply, *s);
}

void write_docs(Reply& reply, const Command& c) {
  const auto subcommands = subcommands_of(c);
  const std::vector<ArgNode> arguments = parse_syntax(c.syntax);
  reply.bulk(c.name);
  reply.map(4 + (arguments.empty() ? 0U : 1U) + (subcommands.empty() ? 0U : 1U));
  write_pair(reply, "summary", c.summary);
  write_pair(reply, "since", c.since);
  write_pair(reply, "group", c.group);
  write_pair(reply, "complexity", c.complexity);
  if (!arguments.empty()) {
    reply.bulk("arguments");
    write_arguments(reply, arguments);
  }
  if (subcommands.empty()) return;
  reply.bulk("subcommands");
  reply.map(subcommands.size());
  for (const Command* s : subcommands) write_docs(reply, *s);
}

struct ListFilter {
  std::optional<std::string_view> category, pattern;
  bool module = false;

  bool passes(const Command& c) const {
    if (module) return false;
    if (pattern && !glob_match(*pattern, c.name, true)) return false;
    if (!category) return true;
    const std::vector<std::string> names = categories(c);
    return std::ranges::any_of(names,
                               [&](const auto& n) { return equals_ignore_case(n.substr(1), *category); });
  }
};

std::optional<ListFilter> read_list_filter(Request& r) {
  ListFilter f;
  if (r.argc() == 2) return f;
  if (r.argc() == 5 && equals_ignore_case(r.arg(2), "FILTERBY")) {
    if (equals_ignore_case(r.arg(3), "MODULE")) return f.module = true, f;
    if (equals_ignore_case(r.arg(3), "ACLCAT")) return f.category = r.arg(4), f;
    if (equals_ignore_case(r.arg(3), "PATTERN")) return f.pattern = r.arg(4), f;
  }
  reply_syntax_error(r);
  return std::nullopt;
}

void write_names(Reply& reply, const std::vector<const Command*>& commands) {
  reply.array(commands.size());
  for (const Command* c : commands) reply.bulk(c->name);
}

}  // namespace

void cmd_command(Request& r) {
  const auto commands = top_level();
  r.reply.array(commands.size());
  for (const Command* c : commands) write_info(r.reply, *c);
}

void cmd_command_count(Request& r) { r.reply.integer(static_cast<int64_t>(top_level().size())); }

void cmd_command_info(Request& r) {
  if (r.argc() == 2) return cmd_command(r);
  r.reply.array(r.argc() - 2);
  for (size_t i = 2; i < r.argc(); ++i) {
    const Command* c = find_command(r.arg(i));
    c == nullptr ? r.reply.null() : write_info(r.reply, *c);
  }
}

void cmd_command_docs(Request& r) {
  std::vector<const Command*> commands;
  if (r.argc() == 2) commands = top_level();
  for (size_t i = 2; i < r.argc(); ++i) {
    if (const Command* c = find_command(r.arg(i))) commands.push_back(c);
  }
  r.reply.map(commands.size());
  for (const Command* c : commands) write_docs(r.reply, *c);
}

void cmd_command_list(Request& r) {
  const auto filter = read_list_filter(r);
  if (!filter) return;
  std::vector<const Command*> commands;
  for (const Command& c : all_commands()) {
    // Redis lists subcommands only where a filter asks for them.
    if (filter->passes(c) && (!c.is_subcommand() || r.argc() > 2)) commands.push_back(&c);
  }
  write_names(r.reply, commands);
}

namespace {

// How a command may use its keys.
void write_access(Reply& reply, const Command& c) {
  reply.set(2);
  reply.simple((c.flags & kWrite) != 0 ? "RW" : "RO");
  reply.simple((c.flags & kWrite) != 0 ? "update" : "access");
}

void reply_keys(Request& r, bool with_flags) {
  const std::span<const std::string_view> asked = r.argv.subspan(2);
  const Command* c = find_row(asked);
  if (c == nullptr) return r.reply.error("ERR Invalid command specified");
  if (c->first_key == 0 && (c->flags & kMovableKeys) == 0) {
    return r.reply.error("ERR The command has no key arguments");
  }
  if (!arity_fits(*c, asked.size())) {
    return r.reply.error("ERR Invalid number of arguments specified for command");
  }
  const auto keys = key_positions(*c, asked);
  if (!keys) return r.reply.array(0);
  r.reply.array(keys->size());
  for (const size_t i : *keys) {
    if (with_flags) r.reply.array(2);
    r.reply.bulk(asked[i]);
    if (with_flags) write_access(r.reply, *c);
  }
}

}  // namespace

void cmd_command_getkeys(Request& r) { reply_keys(r, false); }
void cmd_command_getkeysandflags(Request& r) { reply_keys(r, true); }

void cmd_command_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "(no subcommand)",
      "    Return details about all commands.",
      "COUNT",
      "    Return the total number of commands in this server.",
      "LIST",
      "    Return a list of all commands in this server.",
      "INFO [<command-name> ...]",
      "    Return details about multiple commands.",
      "DOCS [<command-name> ...]",
      "    Return documentation details about multiple commands.",
      "GETKEYS <full-command>",
      "    Return the keys from a full command.",
      "GETKEYSANDFLAGS <full-command>",
      "    Return the keys and the access flags from a full command.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
