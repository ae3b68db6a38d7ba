// Parses and applies rules, one after the other.
#include "core/command/acl_rules.h"

#include <algorithm>
#include <cassert>

#include "core/base/sha256.h"
#include "core/command/acl_selector.h"
#include "core/command/command.h"
#include "core/command/key_access.h"

namespace holdfast {

namespace {

constexpr std::string_view kSyntax = "Syntax error";
constexpr std::string_view kUnknown = "Unknown command or category name in ACL";

bool has_spaces(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char c) { return c == ' ' || c == '\0' || (c >= '\t' && c <= '\r'); });
}

bool is_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// ~pattern, %R~pattern and so on.
std::string_view add_key_pattern(AclSelector& s, std::string_view rule) {
  if (s.all_keys) {
    return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
           "any "
           "effect. Try 'resetkeys' to start with an empty list of patterns";
  }
  uint8_t access = rule[0] == '~' ? kReadAndWritten : 0;
  size_t at = 1;
  for (; rule[0] == '%' && at < rule.size() && rule[at] != '~'; ++at) {
    const char letter = ascii_lower(rule[at]);
    const uint8_t more = letter == 'r' ? kRead : letter == 'w' ? kWritten : 0;
    if (more == 0 || (access & more) != 0) return kSyntax;
    access |= more;
  }
  if (access == 0) return kSyntax;
  if (rule[0] == '%' && at < rule.size()) ++at;
  const std::string_view glob = rule.substr(at);
  if (has_spaces(glob)) return kSyntax;
  const auto old = std::ranges::find(s.keys, glob, &KeyPattern::glob);
  if (old != s.keys.end()) {
    old->access |= access;
  } else {
    s.keys.push_back({std::string(glob), access});
  }
  return {};
}

std::string_view add_channel(AclSelector& s, std::string_view glob) {
  if (s.all_channels) {
    return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
           "have "
           "any effect. Try 'resetchannels' to start with an empty list of channels";
  }
  if (has_spaces(glob)) return kSyntax;
  if (std::ranges::find(s.channels, glob) == s.channels.end()) s.channels.emplace_back(glob);
  return {};
}

// +command|word: allows a subcommand, or for a command without subcommands a first argument.
std::string_view allow_part(AclSelector& s, std::string_view name) {
  const size_t bar = name.rfind('|');
  const Command* command = find_command(name.substr(0, bar));
  if (command == nullptr) return kUnknown;
  if (command->is_subcommand()) return "Allowing first-arg of a subcommand is not supported";
  const std::string_view word = name.substr(bar + 1);
  if (word.empty()) return kSyntax;
  if (!has_subcommands(*command)) {
    std::vector<std::string>& words = s.first_arguments[row_index(*command)];
    const auto same = [word](const std::string& w) { return equals_ignore_case(w, word); };
    if (std::ranges::none_of(words, same)) words.emplace_back(word);
    return {};
  }
  const Command* sub = find_command(name);
  if (sub == nullptr) return kUnknown;
  allow(s, *sub, true);
  return {};
}

// +x, -x, +@x, -@x
std::string_view change_commands(AclSelector& s, std::string_view rule) {
  const bool allowed = rule[0] == '+';
  const std::string_view name = rule.substr(1);
  if (equals_ignore_case(name, "@all")) return allow_all(s, allowed), std::string_view();
  if (name.starts_with('@')) {
    const auto category = category_named(name.substr(1));
    if (!category) return kUnknown;
    allow_category(s, *category, allowed);
    return {};
  }
  if (allowed && name.find('|') != std::string_view::npos) return allow_part(s, name);
  const Command* command = find_command(name);
  if (command == nullptr) return kUnknown;
  allow(s, *command, allowed);
  return {};
}

std::string_view change_selector(AclSelector& s, std::string_view rule) {
  const auto is = [rule](std::string_view word) { return equals_ignore_case(rule, word); };
  if (is("allkeys") || is("~*") || is("resetkeys")) {
    s.all_keys = !is("resetkeys");
    s.keys.clear();
  } else if (is("allchannels") || is("&*") || is("resetchannels")) {
    s.all_channels = !is("resetchannels");
    s.channels.clear();
  } else if (is("allcommands") || is("nocommands")) {
    allow_all(s, is("allcommands"));
  } else if (rule.starts_with('~') || rule.starts_with('%')) {
    return add_key_pattern(s, rule);
  } else if (rule.starts_with('&')) {
    return add_channel(s, rule.substr(1));
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return change_commands(s, rule);
  } else {
    return kSyntax;
  }
  return {};
}

std::string_view change_password(AclUser& user, std::string_view rule) {
  const bool plain = rule[0] == '>' || rule[0] == '<';
  const std::string hash = plain ? sha256_hex(rule.substr(1)) : std::string(rule.substr(1));
  if (!is_hash(hash)) {
    return "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
           "characters";
  }
  const auto old = std::ranges::find(user.passwords, hash);
  if (rule[0] == '<' || rule[0] == '!') {
    if (old == user.passwords.end()) {
      return "The password you are trying to remove from the user does not exist";
    }
    user.passwords.erase(old);
    return {};
  }
  if (old == user.passwords.end()) user.passwords.push_back(hash);
  user.nopass = false;
  return {};
}

std::string_view add_selector(AclUser& user, std::string_view rule) {
  AclSelector selector;
  std::string_view rest = rule.substr(1, rule.size() - 2);
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.empty()) break;
    const size_t end = std::min(rest.find(' '), rest.size());
    if (const std::string_view why = change_selector(selector, rest.substr(0, end)); !why.empty())
      return why;
    rest.remove_prefix(end);
  }
  user.selectors.push_back(std::move(selector));
  return {};
}

std::string_view change_user(AclUser& user, std::string_view rule) {
  const auto is = [rule](std::string_view word) { return equals_ignore_case(rule, word); };
  if (rule.empty()) return {};  // as in Redis
  if (is("on") || is("off")) {
    user.enabled = is("on");
  } else if (is("nopass") || is("resetpass")) {
    user.nopass = is("nopass");
    user.passwords.clear();
  } else if (is("reset")) {
    std::string name = std::move(user.name);
    user = {};
    user.name = std::move(name);
  } else if (is("clearselectors")) {
    user.selectors.clear();
  } else if (is("sanitize-payload") || is("skip-sanitize-payload")) {
    return {};  // for RESTORE, which this server does not have
  } else if (std::string_view("><#!").find(rule[0]) != std::string_view::npos) {
    return change_password(user, rule);
  } else if (rule.starts_with('(') && rule.ends_with(')')) {
    return add_selector(user, rule);
  } else {
    return change_selector(user.root, rule);
  }
  return {};
}

}  // namespace

AclRefusal set_user(AclUser& user, std::span<const std::string_view> rules) {
  AclUser changed = user;
  for (const std::string_view rule : rules) {
    if (const std::string_view why = change_user(changed, rule); !why.empty()) {
      return {std::string(rule), std::string(why)};
    }
  }
  changed.unlimited = changed.root.allows_everything();
  user = std::move(changed);
  return {};
}

bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>& rules) {
  bool open = false;
  for (const std::string_view word : words) {
    if (open) {
      rules.back().append(" ").append(word);
    } else {
      rules.emplace_back(word);
    }
    // Any rule that begins with a parenthesis opens a selector, as in Redis.
    open = (open || word.starts_with('(')) && !word.ends_with(')');
  }
  return !open;
}

}  // namespace holdfast
