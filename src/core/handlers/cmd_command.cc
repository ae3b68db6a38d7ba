// COMMAND: shows the command table. redis-cli builds its hints and help from COMMAND DOCS.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "core/base/glob.h"
#include "core/codec/reply.h"
#include "core/command/categories.h"
#include "core/command/handlers.h"
#include "core/command/key_access.h"
#include "core/command/syntax.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

struct FlagName {
  uint64_t flag;
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
    {kNoMulti, "no_multi"},
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

// Writes flags such as "RW access update" as a set.
void write_key_flags(Reply& reply, std::string_view flags) {
  reply.set(static_cast<size_t>(std::ranges::count(flags, ' ')) + 1);
  while (true) {
    const size_t end = std::min(flags.find(' '), flags.size());
    reply.simple(flags.substr(0, end));
    if (end == flags.size()) return;
    flags.remove_prefix(end + 1);
  }
}

// Writes the specification of a range of keys with the same access.
void write_key_spec(Reply& reply, std::string_view flags, int first, int last, int step) {
  reply.map(3);
  reply.bulk("flags");
  write_key_flags(reply, flags);
  reply.bulk("begin_search");
  reply.map(2);
  reply.pair("type", "index");
  reply.bulk("spec");
  reply.map(1);
  reply.pair("index", first);
  reply.bulk("find_keys");
  reply.map(2);
  reply.pair("type", "range");
  reply.bulk("spec");
  reply.map(3);
  reply.pair("lastkey", last < 0 ? last : last - first);
  reply.pair("keystep", step);
  reply.pair("limit", 0);
}

// Writes the key specification of a command whose keys are found by a count. ZUNIONSTORE has another key in
// front of it.
void write_counted_key_specs(Reply& reply, const Command& c) {
  const bool destination = c.first_key == 1;
  reply.array(destination ? 2 : 1);
  if (destination) write_key_spec(reply, widest_key_flags(c, 0), 1, 1, 1);
  reply.map(3);
  reply.bulk("flags");
  write_key_flags(reply, widest_key_flags(c, destination ? 1 : 0));
  reply.bulk("begin_search");
  reply.map(2);
  reply.pair("type", "index");
  reply.bulk("spec");
  reply.map(1);
  reply.pair("index", static_cast<int64_t>(key_count_of(c).at));
  reply.bulk("find_keys");
  reply.map(2);
  reply.pair("type", "keynum");
  reply.bulk("spec");
  reply.map(3);
  reply.pair("keynumidx", 0);
  reply.pair("firstkey", 1);
  reply.pair("keystep", static_cast<int64_t>(key_count_of(c).step));
}

void write_key_specs(Reply& reply, const Command& c) {
  if (c.has(kMovableKeys)) return write_counted_key_specs(reply, c);
  if (c.first_key == 0) return reply.array(0);
  const std::string_view first = widest_key_flags(c, 0);
  const std::string_view others = widest_key_flags(c, 1);
  if (first == others) {
    reply.array(1);
    return write_key_spec(reply, first, c.first_key, c.last_key, c.key_step);
  }
  reply.array(2);
  write_key_spec(reply, first, c.first_key, c.first_key, 1);
  write_key_spec(reply, others, c.first_key + 1, c.last_key, 1);
}

void write_categories(Reply& reply, const Command& c) {
  const uint32_t set = categories_of(c);
  reply.set(static_cast<size_t>(std::popcount(set)));
  for (size_t i = 0; i < category_names().size(); ++i) {
    if ((set >> i & 1U) != 0) reply.simple("@" + std::string(category_names()[i]));
  }
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
  write_categories(reply, c);
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
  reply.pair("summary", c.summary);
  reply.pair("since", c.since);
  reply.pair("group", c.group);
  reply.pair("complexity", c.complexity);
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
    GlobSteps steps{.allowed = kNameSteps};
    if (pattern && !glob_match(*pattern, c.name, steps, true)) return false;
    if (!category) return true;
    return (categories_of(c) & category_named(*category).value_or(0)) != 0;
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
    if (filter->passes(c)) commands.push_back(&c);
  }
  write_names(r.reply, commands);
}

namespace {

void reply_keys(Request& r, bool with_flags) {
  const std::span<const std::string_view> asked = r.argv.subspan(2);
  const Command* c = find_row(asked);
  if (c == nullptr) return r.reply.error("ERR Invalid command specified");
  if (c->first_key == 0 && !c->has(kMovableKeys)) {
    return r.reply.error("ERR The command has no key arguments");
  }
  if (!arity_fits(*c, asked.size())) {
    return r.reply.error("ERR Invalid number of arguments specified for command");
  }
  const auto keys = key_positions(*c, asked);
  if (!keys && !c->has(kNoMandatoryKeys))
    return r.reply.error("ERR Invalid arguments specified for command");
  if (!keys) return r.reply.array(0);
  r.reply.array(keys->size());
  for (size_t n = 0; n < keys->size(); ++n) {
    if (with_flags) r.reply.array(2);
    r.reply.bulk(asked[(*keys)[n]]);
    if (with_flags) write_key_flags(r.reply, key_flags(*c, asked, n));
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
