// A command's argument syntax: written once as text in the command's table row, and shown by COMMAND DOCS
// as a tree, from which redis-cli builds its hints and help. Independent of the commands. Not for a hot
// path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/codec/reply.h"

namespace holdfast {

enum class ArgType { kString, kInteger, kDouble, kKey, kPattern, kUnixTime, kPureToken, kOneOf, kBlock };

struct ArgNode {
  std::string name;
  ArgType type = ArgType::kString;
  std::string token;  // the word before the argument, in upper case; empty if none
  int key_spec = -1;  // for a key: the number of keys before it in the syntax
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;     // each repetition repeats the token
  std::vector<ArgNode> arguments;  // for kOneOf: the alternatives, for kBlock: the parts
};

// Parses text such as
//   key owner ttl [SHARED | LIMIT limit] [WAIT milliseconds [ASYNC]]
//   key value [key value ...]
// by the grammar
//   choice   = sequence *("|" sequence)
//   sequence = *item
//   item     = TOKEN | [TOKEN] name | [TOKEN] "<" choice ">" | "[" choice "]" | "[" sequence "..." "]"
// A TOKEN has no lower-case letter and belongs to the name or the group behind it; "[a b ...]" repeats the
// `a b` before it. A name determines its type ("key", "milliseconds", "pattern"; most are strings). The
// text is part of the program: a malformed one fails an assertion.
std::vector<ArgNode> parse_syntax(std::string_view text);

// Writes the "arguments" value of COMMAND DOCS in the form of Redis 7.0. For a command without arguments
// Redis omits the entry.
void write_arguments(Reply& reply, const std::vector<ArgNode>& arguments);

}  // namespace holdfast
