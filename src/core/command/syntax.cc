// Parses and writes argument syntax; see syntax.h for the grammar.
#include "core/command/syntax.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <utility>

#include "core/base/parse.h"

namespace holdfast {
namespace {

struct TypedName {
  std::string_view name;
  ArgType type;
};

// Names that are not strings. The types are documentation for users and tools; no handler reads them.
constexpr std::array kTypedNames = {
    TypedName{"client-id", ArgType::kInteger}, TypedName{"connection-id", ArgType::kInteger},
    TypedName{"count", ArgType::kInteger},     TypedName{"cursor", ArgType::kInteger},
    TypedName{"decrement", ArgType::kInteger}, TypedName{"destination", ArgType::kKey},
    TypedName{"end", ArgType::kInteger},       TypedName{"float", ArgType::kDouble},
    TypedName{"hint", ArgType::kInteger},      TypedName{"increment", ArgType::kInteger},
    TypedName{"index", ArgType::kInteger},     TypedName{"index1", ArgType::kInteger},
    TypedName{"index2", ArgType::kInteger},    TypedName{"key", ArgType::kKey},
    TypedName{"len", ArgType::kInteger},       TypedName{"limit", ArgType::kInteger},
    TypedName{"max-burst", ArgType::kInteger}, TypedName{"milliseconds", ArgType::kInteger},
    TypedName{"newkey", ArgType::kKey},        TypedName{"num-matches", ArgType::kInteger},
    TypedName{"numfields", ArgType::kInteger}, TypedName{"numkeys", ArgType::kInteger},
    TypedName{"offset", ArgType::kInteger},    TypedName{"pattern", ArgType::kPattern},
    TypedName{"period", ArgType::kInteger},    TypedName{"protover", ArgType::kInteger},
    TypedName{"quantity", ArgType::kInteger},  TypedName{"rank", ArgType::kInteger},
    TypedName{"seconds", ArgType::kInteger},   TypedName{"source", ArgType::kKey},
    TypedName{"start", ArgType::kInteger},     TypedName{"stop", ArgType::kInteger},
    TypedName{"timeout", ArgType::kDouble},    TypedName{"token", ArgType::kInteger},
    TypedName{"ttl", ArgType::kInteger},
};

ArgType type_of_name(std::string_view name) {
  if (name.starts_with("unix-time-")) return ArgType::kUnixTime;
  const auto* const found = std::find_if(kTypedNames.begin(), kTypedNames.end(),
                                         [name](const TypedName& row) { return row.name == name; });
  return found == kTypedNames.end() ? ArgType::kString : found->type;
}

std::string_view type_text(ArgType type) {
  switch (type) {
    case ArgType::kString:
      return "string";
    case ArgType::kInteger:
      return "integer";
    case ArgType::kDouble:
      return "double";
    case ArgType::kKey:
      return "key";
    case ArgType::kPattern:
      return "pattern";
    case ArgType::kUnixTime:
      return "unix-time";
    case ArgType::kPureToken:
      return "pure-token";
    case ArgType::kOneOf:
      return "oneof";
    case ArgType::kBlock:
      return "block";
  }
  return "string";
}

constexpr std::string_view kMarks = "[]<>|";

// Splits the text into words and marks. A mark is a word of its own, with or without blanks around it.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    size_t size = kMarks.find(text[0]) != std::string_view::npos
                      ? 1
                      : std::min(text.find_first_of(" []<>|"), text.size());
    if (size > 0) words.push_back(text.substr(0, size));
    if (size == 0) size = 1;  // a blank
    text.remove_prefix(size);
  }
  return words;
}

bool is_token(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string lower(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(), ascii_lower);
  return text;
}

// A group has no name in the text. It is named after its parts, as Redis often does.
ArgNode group(ArgType type, std::vector<ArgNode> parts) {
  ArgNode node;
  node.type = type;
  for (const ArgNode& part : parts) {
    if (!node.name.empty()) node.name += '_';
    node.name += part.name;
  }
  node.arguments = std::move(parts);
  return node;
}

ArgNode as_one(std::vector<ArgNode> nodes) {
  assert(!nodes.empty());
  return nodes.size() == 1 ? std::move(nodes[0]) : group(ArgType::kBlock, std::move(nodes));
}

// "[again ...]" follows the arguments that it repeats. Marks these as multiple, as a block if there are
// several.
void mark_repeated(std::vector<ArgNode>& nodes, const std::vector<ArgNode>& again) {
  assert(!again.empty() && again.size() <= nodes.size());
  const auto first = nodes.end() - static_cast<std::ptrdiff_t>(again.size());
  assert(std::equal(first, nodes.end(), again.begin(),
                    [](const ArgNode& a, const ArgNode& b) { return a.name == b.name; }));
  if (again.size() > 1) {
    ArgNode block =
        group(ArgType::kBlock, {std::make_move_iterator(first), std::make_move_iterator(nodes.end())});
    block.token = std::exchange(block.arguments[0].token, {});
    nodes.erase(first, nodes.end());
    nodes.push_back(std::move(block));
  }
  nodes.back().multiple = true;
  nodes.back().multiple_token = !again[0].token.empty();
}

class SyntaxParser {
 public:
  explicit SyntaxParser(std::string_view text) : words_(split(text)) {}

  std::vector<ArgNode> whole() {
    std::vector<ArgNode> nodes = choice();
    assert(word().empty());
    return nodes;
  }

 private:
  // The next word; empty at the end.
  std::string_view word() const { return next_ < words_.size() ? words_[next_] : std::string_view(); }
  bool take(std::string_view expected) {
    if (word() != expected) return false;
    ++next_;
    return true;
  }
  void expect(std::string_view expected) {
    [[maybe_unused]] const bool taken = take(expected);
    assert(taken);
  }
  bool at_name() const { return !is_token(word()); }
  bool at_item() const {
    return !word().empty() && word() != "]" && word() != ">" && word() != "|" && word() != "...";
  }

  std::vector<ArgNode> choice() {
    std::vector<ArgNode> nodes = sequence();
    if (word() != "|") return nodes;
    std::vector<ArgNode> alternatives;
    alternatives.push_back(as_one(std::move(nodes)));
    while (take("|")) alternatives.push_back(as_one(sequence()));
    std::vector<ArgNode> one;
    one.push_back(group(ArgType::kOneOf, std::move(alternatives)));
    return one;
  }

  std::vector<ArgNode> sequence() {
    std::vector<ArgNode> nodes;
    while (at_item()) {
      if (take("[")) {
        add_bracketed(nodes);
      } else {
        nodes.push_back(argument());
      }
    }
    return nodes;
  }

  void add_bracketed(std::vector<ArgNode>& nodes) {
    std::vector<ArgNode> inner = choice();
    if (take("...")) {
      mark_repeated(nodes, inner);
    } else {
      nodes.push_back(as_one(std::move(inner)));
      nodes.back().optional = true;
    }
    expect("]");
  }

  ArgNode argument() {
    if (word() == "<" || at_name()) return value();
    const std::string_view token = words_[next_++];
    ArgNode node;
    if (word() == "<" || at_name()) {
      node = value();
    } else {
      node.name = lower(token);
      node.type = ArgType::kPureToken;
    }
    node.token = token;
    return node;
  }

  ArgNode value() {
    if (take("<")) {
      ArgNode node = as_one(choice());
      expect(">");
      return node;
    }
    ArgNode node;
    node.name = words_[next_++];
    node.type = type_of_name(node.name);
    return node;
  }

  std::vector<std::string_view> words_;
  size_t next_ = 0;
};

void number_keys(std::vector<ArgNode>& nodes, int& keys) {
  for (ArgNode& node : nodes) {
    if (node.type == ArgType::kKey) node.key_spec = keys++;
    number_keys(node.arguments, keys);
  }
}

std::vector<std::string_view> flags_of(const ArgNode& node) {
  std::vector<std::string_view> flags;
  if (node.optional) flags.push_back("optional");
  if (node.multiple) flags.push_back("multiple");
  if (node.multiple_token) flags.push_back("multiple_token");
  return flags;
}

void write_argument(Reply& reply, const ArgNode& node) {
  const std::vector<std::string_view> flags = flags_of(node);
  const bool nested = !node.arguments.empty();
  size_t entries = 2;
  for (const bool present : {node.key_spec >= 0, !node.token.empty(), !flags.empty(), nested})
    entries += present;
  reply.map(entries);
  reply.bulk("name");
  reply.bulk(node.name);
  reply.bulk("type");
  reply.bulk(type_text(node.type));
  if (node.key_spec >= 0) {
    reply.bulk("key_spec_index");
    reply.integer(node.key_spec);
  }
  if (!node.token.empty()) {
    reply.bulk("token");
    reply.bulk(node.token);
  }
  if (!flags.empty()) {
    reply.bulk("flags");
    reply.set(flags.size());
    for (const std::string_view flag : flags) reply.simple(flag);
  }
  if (nested) {
    reply.bulk("arguments");
    write_arguments(reply, node.arguments);
  }
}

}  // namespace

std::vector<ArgNode> parse_syntax(std::string_view text) {
  std::vector<ArgNode> nodes = SyntaxParser(text).whole();
  int keys = 0;
  number_keys(nodes, keys);
  return nodes;
}

void write_arguments(Reply& reply, const std::vector<ArgNode>& arguments) {
  reply.array(arguments.size());
  for (const ArgNode& node : arguments) write_argument(reply, node);
}

}  // namespace holdfast
