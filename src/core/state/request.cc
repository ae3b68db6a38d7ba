// Replies that several handlers use.
#include "core/state/request.h"

#include <string>

namespace holdfast {

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
void reply_subcommand_syntax(Request& r) {
  r.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                std::string(r.arg(1).substr(0, 128)) + "'. Try " + upper_case(r.command.container()) +
                " HELP.");
}
void reply_syntax_error(Request& r) { r.reply.error("ERR syntax error"); }
void reply_too_many_ahead(Request& r) {
  r.reply.error("ERR too many keys have tokens ahead of the clock; retry later, or with a smaller token");
}

void reply_not_an_integer(Request& r) { r.reply.error("ERR value is not an integer or out of range"); }
void reply_wrong_type(Request& r) {
  r.reply.error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

void reply_help(Request& r, std::span<const std::string_view> lines) {
  r.reply.array(lines.size() + 3);
  r.reply.simple(upper_case(r.command.container()) +
                 " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const std::string_view line : lines) r.reply.simple(line);
  r.reply.simple("HELP");
  r.reply.simple("    Prints this help.");
}

}  // namespace holdfast
