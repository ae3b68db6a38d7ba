// One request being run: what a handler is given, and the replies that several handlers give.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/state/state.h"

namespace holdfast {

// One request being run. The handler parses all, checks all, changes once, replies once.
struct Request {
  Context& ctx;
  Conn& c;
  const Command& command;
  std::span<const std::string_view> argv;
  Reply reply;
  bool may_block = false;      // not inside a transaction or a script
  bool from_script = false;    // by redis.call()
  bool error_counted = false;  // a script's error is that of its command, which has been counted

  EngineState& s() const { return ctx.s; }
  Keyspace& keys() const { return ctx.keys(c.db); }
  size_t argc() const { return argv.size(); }
  std::string_view arg(size_t i) const { return argv[i]; }
  TimeMs now() const { return ctx.now.mono; }
};

// Reads an argument that must be a number in a range; where it is none, writes an error that names `what`.
std::optional<int64_t> read_number(Request& r, size_t i, std::string_view what, int64_t lowest,
                                   int64_t highest);

// Errors that several handlers give.
void reply_syntax_error(Request& r);
void reply_wrong_arity(Request& r);
void reply_not_an_integer(Request& r);
void reply_too_many_ahead(Request& r);
void reply_wrong_type(Request& r);
// A subcommand with a wrong number of arguments, where Redis points to HELP.
void reply_subcommand_syntax(Request& r);

// The lines of "X HELP", with Redis's first and last.
void reply_help(Request& r, std::span<const std::string_view> lines);

}  // namespace holdfast
