// A running request: the input of a command handler, and the replies that several handlers use.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/codec/reply.h"
#include "core/command/command.h"
#include "core/keyspace/keyspace.h"
#include "core/state/conn.h"
#include "core/state/context.h"

namespace holdfast {

// A running request. The handler parses all, checks all, changes once, replies once.
struct Request {
  Context& ctx;
  Conn& c;
  const Command& command;
  std::span<const std::string_view> argv;
  Reply reply;
  bool may_block = false;      // false inside a transaction or a script
  bool from_script = false;    // called by redis.call()
  bool error_counted = false;  // a script failed by the error of a command, which is already counted

  EngineState& s() const { return ctx.s; }
  Keyspace& keys() const { return ctx.keys(c.db); }
  size_t argc() const { return argv.size(); }
  std::string_view arg(size_t i) const { return argv[i]; }
  TimeMs now() const { return ctx.now.mono; }
};

// Reads an argument that must be a number in a range. If it is not, writes an error that names `what` and
// returns nullopt.
std::optional<int64_t> read_number(Request& r, size_t i, std::string_view what, int64_t lowest,
                                   int64_t highest);

// Error replies that several handlers use.
void reply_syntax_error(Request& r);
void reply_wrong_arity(Request& r);
void reply_not_an_integer(Request& r);
void reply_too_many_ahead(Request& r);
void reply_wrong_type(Request& r);
// The error for a subcommand with a wrong number of arguments, where Redis refers to HELP.
void reply_subcommand_syntax(Request& r);

// Writes the reply of "X HELP": the lines, between Redis's first line and its last two.
void reply_help(Request& r, std::span<const std::string_view> lines);

}  // namespace holdfast
