// Changes and describes sets of commands.
#include "core/command/acl_selector.h"

#include <cassert>
#include <climits>

#include "core/command/command.h"
#include "core/command/key_access.h"

namespace holdfast {

namespace {

struct Rows {
  std::vector<uint32_t> categories;
  std::vector<std::vector<size_t>> subcommands;

  Rows() {
    const auto commands = all_commands();
    assert(commands.size() <= AclSelector::kMaxCommands);
    subcommands.resize(commands.size());
    for (const Command& c : commands) {
      categories.push_back(categories_of(c));
      if (c.is_subcommand()) subcommands[row_index(*find_command(c.container()))].push_back(row_index(c));
    }
  }
};

const Rows& rows() {
  static const Rows kRows;
  return kRows;
}

void allow_row(AclSelector& s, size_t row, bool allowed) {
  s.commands[row] = allowed;
  s.first_arguments.erase(row);
  for (const size_t sub : rows().subcommands[row]) s.commands[sub] = allowed;
}

// Returns the bit index of the unused category with the fewest wrong commands, then the most right ones.
// Returns -1 if no category has more right commands than wrong ones. `left` is the wanted set; `allowed`:
// categories are added to "-@all"; else they are removed from "+@all".
int best_category(const std::bitset<AclSelector::kMaxCommands>& left, bool allowed, uint32_t used) {
  int best = -1;
  size_t fewest_wrong = SIZE_MAX;
  size_t most_right = 0;
  for (size_t k = 0; k < category_names().size(); ++k) {
    if ((used >> k & 1U) != 0) continue;
    size_t right = 0;
    size_t wrong = 0;
    for (size_t row = 0; row < rows().categories.size(); ++row) {
      if ((rows().categories[row] >> k & 1U) == 0) continue;
      left[row] == allowed ? ++right : ++wrong;
    }
    if (right <= wrong) continue;
    if (wrong > fewest_wrong || (wrong == fewest_wrong && right <= most_right)) continue;
    best = static_cast<int>(k);
    fewest_wrong = wrong;
    most_right = right;
  }
  return best;
}

void add(std::string& rules, std::string_view sign, std::string_view name) {
  if (!rules.empty()) rules += ' ';
  rules.append(sign).append(name);
}

}  // namespace

size_t row_index(const Command& command) { return static_cast<size_t>(&command - all_commands().data()); }

bool has_subcommands(const Command& command) { return !rows().subcommands[row_index(command)].empty(); }

void allow(AclSelector& s, const Command& command, bool allowed) {
  allow_row(s, row_index(command), allowed);
}

void allow_category(AclSelector& s, uint32_t category, bool allowed) {
  for (size_t row = 0; row < rows().categories.size(); ++row) {
    if ((rows().categories[row] & category) != 0) allow_row(s, row, allowed);
  }
}

void allow_all(AclSelector& s, bool allowed) {
  s.first_arguments.clear();
  s.later_commands = allowed;
  allowed ? s.commands.set() : s.commands.reset();
}

bool AclSelector::allows_everything() const {
  return all_keys && all_channels && later_commands && commands.all();
}

std::string describe_commands(const AclSelector& selector) {
  const bool adding = !selector.later_commands;
  AclSelector built;  // the result of the rules so far
  allow_all(built, !adding);
  std::string rules = adding ? "-@all" : "+@all";
  AclSelector left = selector;  // what the rules so far do not cover
  uint32_t used = 0;
  for (int best = 0; (best = best_category(left.commands, adding, used)) >= 0;) {
    const uint32_t category = 1U << static_cast<unsigned>(best);
    add(rules, adding ? "+@" : "-@", category_names()[static_cast<size_t>(best)]);
    allow_category(built, category, adding);
    allow_category(left, category, !adding);
    used |= category;
  }
  for (const Command& c : all_commands()) {
    const size_t row = row_index(c);
    const bool allowed = selector.commands[row];
    if (built.commands[row] != allowed) {
      add(rules, allowed ? "+" : "-", c.name);
      allow_row(built, row, allowed);
    }
    const auto words = selector.first_arguments.find(row);
    if (allowed || words == selector.first_arguments.end()) continue;
    for (const std::string& word : words->second) add(rules, "+", std::string(c.name) + "|" + word);
  }
  assert((built.commands ^ selector.commands).none());
  return rules;
}

std::string describe_keys(const AclSelector& selector) {
  if (selector.all_keys) return "~*";
  std::string rules;
  for (const KeyPattern& p : selector.keys) {
    add(rules, p.access == kReadAndWritten ? "~" : p.access == kRead ? "%R~" : "%W~", p.glob);
  }
  return rules;
}

std::string describe_channels(const AclSelector& selector) {
  if (selector.all_channels) return "&*";
  std::string rules;
  for (const std::string& glob : selector.channels) add(rules, "&", glob);
  return rules;
}

namespace {

std::string describe_selector(const AclSelector& s) {
  std::string rules = describe_keys(s);
  if (!s.all_channels) add(rules, "", "resetchannels");
  if (const std::string channels = describe_channels(s); !channels.empty()) add(rules, "", channels);
  add(rules, "", describe_commands(s));
  return rules;
}

}  // namespace

std::string describe_user(const AclUser& user) {
  std::string rules = user.enabled ? "on" : "off";
  if (user.nopass) add(rules, "", "nopass");
  for (const std::string& hash : user.passwords) add(rules, "#", hash);
  add(rules, "", describe_selector(user.root));
  for (const AclSelector& s : user.selectors) add(rules, "", "(" + describe_selector(s) + ")");
  return rules;
}

}  // namespace holdfast
