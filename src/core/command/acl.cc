// The table of users, and its text form.
#include "core/command/acl.h"

#include <algorithm>
#include <vector>

#include "core/base/sha256.h"
#include "core/base/words.h"

namespace holdfast {

namespace {

// Compares in a time that does not depend on the number of equal bytes.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

// Applies one line of a text. Returns an empty string, or the error.
std::string load_line(Acl::Users& users, std::string_view line, const std::string& place) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.empty() || words[0].starts_with('#')) return "";
  if (words.size() < 2 || words[0] != "user") {
    return place + " should start with user keyword followed by the username. ";
  }
  if (users.contains(words[1])) return place + ": Duplicate user '" + std::string(words[1]) + "'. ";
  std::vector<std::string> rules;
  if (!join_selectors(std::span(words).subspan(2), rules)) {
    return place + ": Unmatched parenthesis in selector definition. ";
  }
  auto user = std::make_unique<AclUser>();
  user->name = words[1];
  const AclRefusal refusal = set_user(*user, std::vector<std::string_view>(rules.begin(), rules.end()));
  // The error contains the rule, unless the rule may be a password.
  const bool shown = refusal.rule.starts_with('+') || refusal.rule.starts_with('-');
  if (!refusal.why.empty()) {
    return place + (shown ? ": Error in applying operation '" + refusal.rule + "': " : ": ") + refusal.why +
           ". ";
  }
  users.emplace(std::string(words[1]), std::move(user));
  return "";
}

}  // namespace

std::unique_ptr<AclUser> Acl::make_default() const {
  auto user = std::make_unique<AclUser>();
  user->name = "default";
  const std::string_view rules[] = {"on", password_rule_, "~*", "&*", "+@all"};
  set_user(*user, rules);
  return user;
}

Acl::Acl(std::string_view password) {
  keep_password(password);
  users_.emplace("default", make_default());
}

void Acl::keep_password(std::string_view password) {
  password_rule_ = password.empty() ? "nopass" : "#" + sha256_hex(password);
}

void Acl::set_default_password(std::string_view password) {
  keep_password(password);
  const std::string_view rules[] = {"resetpass", password_rule_};
  set_user(default_user(), rules);
}

AclUser* Acl::find(std::string_view name) const {
  const auto it = users_.find(name);
  return it == users_.end() ? nullptr : it->second.get();
}

AclUser& Acl::add(std::string_view name) {
  auto& user = users_[std::string(name)];
  user = std::make_unique<AclUser>();
  user->name = name;
  return *user;
}

std::string Acl::load(std::string_view text, std::string_view source) {
  Users loaded;
  std::string wrong;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    wrong += load_line(loaded, text.substr(0, end), std::string(source) + ":" + std::to_string(++number));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!wrong.empty()) {
    return wrong +
           "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
  }
  if (!loaded.contains("default")) loaded.emplace("default", make_default());
  for (auto& [name, user] : loaded) {
    AclUser* old = find(name);
    if (old == nullptr || (name != "default" && describe_user(*old) != describe_user(*user))) continue;
    *old = std::move(*user);
    user = std::move(users_.find(name)->second);
  }
  users_ = std::move(loaded);
  return "";
}

std::vector<std::string> Acl::lines() const {
  std::vector<std::string> lines;
  for (const auto& [name, user] : users_) lines.push_back(name + " " + describe_user(*user));
  return lines;
}

bool Acl::is_plain() const {
  return users_.size() == 1 && describe_user(default_user()) == describe_user(*make_default());
}

const AclUser* Acl::authenticate(std::string_view name, std::string_view password) const {
  const std::string hash = sha256_hex(password);
  const AclUser* user = find(name);
  if (user == nullptr || !user->enabled) return nullptr;
  if (user->nopass) return user;
  bool known = false;
  for (const std::string& own : user->passwords) known = equal_in_constant_time(own, hash) || known;
  return known ? user : nullptr;
}

}  // namespace holdfast
