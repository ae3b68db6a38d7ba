// Walks the syntax tree.
#include "syntax_words.h"

#include <algorithm>
#include <utility>

namespace holdfast::simulation {
namespace {

using Words = std::vector<std::string>;

class Walk {
 public:
  Walk(Words words, Dice& dice, const ValueMaker& value)
      : words_(std::move(words)), dice_(dice), value_(value) {}

  Words of(const std::vector<ArgNode>& nodes) {
    add_all(nodes);
    return std::move(words_);
  }

 private:
  void add_all(const std::vector<ArgNode>& nodes) {
    for (const ArgNode& node : nodes) {
      if (node.optional && dice_.one_in(2)) continue;
      size_t times = 1;
      if (node.multiple) times = dice_.one_in(10) ? dice_.below(100) + 1 : dice_.below(4) + 1;
      for (size_t i = 0; i < times; ++i) {
        if (!node.token.empty() && (i == 0 || node.multiple_token)) words_.push_back(node.token);
        add(node);
      }
    }
  }
  void add(const ArgNode& node) {
    switch (node.type) {
      case ArgType::kBlock:
        return add_all(node.arguments);
      case ArgType::kOneOf:
        return add_all({dice_.pick(node.arguments)});
      case ArgType::kPureToken:
        return;  // its token is there already
      default:
        words_.push_back(value_(node));
    }
  }

  Words words_;
  Dice& dice_;
  const ValueMaker& value_;
};

}  // namespace

std::vector<const Command*> runnable_commands() {
  std::vector<const Command*> commands;
  for (const Command& command : all_commands()) {
    if (command.handler != nullptr) commands.push_back(&command);
  }
  return commands;
}

Words words_for(const Command& command, Dice& dice, const ValueMaker& value) {
  Words words = {upper_case(command.container())};
  if (command.is_subcommand())
    words.push_back(upper_case(command.name.substr(command.container().size() + 1)));
  if (command.syntax.empty()) return words;
  return Walk(std::move(words), dice, value).of(parse_syntax(command.syntax));
}

Words damaged(Words words, Dice& dice) {
  const size_t at = dice.below(words.size());
  const Words junk = {"",  "-1",       "0",  "nan", "9223372036854775808", std::string(2000, 'y'),
                      "*", "\xff\r\n", "~k", "1.5"};
  switch (dice.below(4)) {
    case 0:
      words.push_back(dice.pick(junk));
      break;
    case 1:
      words.resize(std::max<size_t>(at, 1));
      break;
    case 2:
      words[at] = dice.pick(junk);
      break;
    default:
      for (char& c : words[0]) c = ascii_lower(c);
  }
  return words;
}

}  // namespace holdfast::simulation
