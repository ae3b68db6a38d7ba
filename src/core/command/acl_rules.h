// A user's rules: their meaning, their parsing, and their text form. The grammar is that of Redis 7.0:
//
//   user = "user" name {rule}                       as in an ACL file; in the config file after "user ="
//   rule = on | off | nopass | resetpass | >password | <password | #hash | !hash | reset
//        | "(" {part} ")" | clearselectors          selectors: sets of permissions beside the user's own
//        | sanitize-payload | skip-sanitize-payload   accepted, without effect here
//        | part
//   part = ~pattern | %R~pattern | %W~pattern | %RW~pattern | allkeys | resetkeys
//        | &pattern | allchannels | resetchannels
//        | +command | -command | +command|sub | -command|sub | +command|first-argument
//        | +@category | -@category | allcommands | nocommands
//
// Pure values: depends on the command table, but not on connections.
#pragma once

#include <absl/container/btree_map.h>

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct Command;

struct KeyPattern {
  std::string glob;
  uint8_t access = 0;  // KeyAccess
};

// A set of permissions: a command is allowed if one selector allows it with all its keys and channels.
struct AclSelector {
  static constexpr size_t kMaxCommands = 512;
  std::bitset<kMaxCommands> commands;  // by the row's index in all_commands()
  bool later_commands = false;         // also commands of later versions: it began with +@all
  absl::btree_map<size_t, std::vector<std::string>> first_arguments;  // commands allowed only with these
  bool all_keys = false;
  bool all_channels = false;
  std::vector<KeyPattern> keys;
  std::vector<std::string> channels;

  bool allows_everything() const;
};

struct AclUser {
  std::string name;
  bool enabled = false;
  bool nopass = false;                 // any password is accepted
  std::vector<std::string> passwords;  // SHA-256, hex digits in lower case
  AclSelector root;
  std::vector<AclSelector> selectors;
  bool unlimited = false;  // root allows everything: set by set_user(), so that no check is needed
};

// The first rejected rule, and the reason. `why` is empty if all rules were accepted.
struct AclRefusal {
  std::string rule;
  std::string why;
};

// Applies all of the rules, or none of them.
AclRefusal set_user(AclUser& user, std::span<const std::string_view> rules);

// Joins the words of a selector that consists of several. Returns false if the last selector, which is then
// the last of `rules`, is not closed.
bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>& rules);

// Returns rules that make the same user again: "on #2bb8... ~key* resetchannels -@all +get". Searches for
// the shortest list of categories and commands, as Redis 7.0 does. So the original order of the rules is
// lost.
std::string describe_user(const AclUser& user);
std::string describe_commands(const AclSelector& selector);
std::string describe_keys(const AclSelector& selector);
std::string describe_channels(const AclSelector& selector);

// The index of a row in all_commands().
size_t row_index(const Command& command);

}  // namespace holdfast
