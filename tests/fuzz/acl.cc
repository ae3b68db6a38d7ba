// The rules of users. A file or a single rule is rejected with a reason and changes nothing, or it makes
// users whose description parses to the same users.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/command/acl.h"
#include "fuzz/targets.h"

namespace holdfast::fuzz {
namespace {

bool same_keys(const AclSelector& a, const AclSelector& b) {
  return std::ranges::equal(a.keys, b.keys, [](const KeyPattern& x, const KeyPattern& y) {
    return x.glob == y.glob && x.access == y.access;
  });
}

bool same(const AclSelector& a, const AclSelector& b) {
  return a.commands == b.commands && a.first_arguments == b.first_arguments && a.all_keys == b.all_keys &&
         a.all_channels == b.all_channels && same_keys(a, b) && a.channels == b.channels;
}

bool same(const AclUser& a, const AclUser& b) {
  const auto same_selectors = [](const AclSelector& x, const AclSelector& y) { return same(x, y); };
  return a.enabled == b.enabled && a.nopass == b.nopass && a.passwords == b.passwords &&
         same(a.root, b.root) && std::ranges::equal(a.selectors, b.selectors, same_selectors);
}

void load_again(const Acl& acl) {
  std::string text;
  for (const std::string& line : acl.lines()) text.append("user ").append(line).append("\n");
  Acl again("");
  must(again.load(text, "its own lines").empty(), "what is written down is taken");
  must(again.users().size() == acl.users().size(), "with all users");
  for (const auto& [name, user] : acl.users()) {
    const AclUser* other = again.find(name);
    must(other != nullptr && same(*user, *other), "and makes the same ones");
  }
}

// There is one rule a line, so that rules may have blanks.
void set_rules(Acl& acl, std::string_view text) {
  std::vector<std::string_view> rules;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    rules.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  AclUser& user = acl.default_user();
  const AclUser before = user;
  const AclRefusal refusal = set_user(user, rules);
  if (!refusal.why.empty()) must(same(user, before), "rules that are refused change nothing");
}

}  // namespace

void fuzz_acl(std::string_view bytes) {
  Source source(bytes);
  Acl acl(source.one_in(2) ? "secret" : "");
  const std::vector<std::string> before = acl.lines();
  if (source.one_in(2)) {
    set_rules(acl, source.rest());
  } else if (!acl.load(source.rest(), "a file").empty()) {
    must(acl.lines() == before, "a file that is refused changes nothing");
  }
  const bool writable = std::ranges::all_of(acl.users(), [](const auto& entry) {
    const std::string text = describe_user(*entry.second);
    return text.find_first_of("\n\r") == std::string::npos;
  });
  if (writable) load_again(acl);
}

}  // namespace holdfast::fuzz
