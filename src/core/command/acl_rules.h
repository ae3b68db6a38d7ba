// A user's rules: what they say, how one is added, how all are written down. Redis 7.0's grammar:
//
//   user = "user" name {rule}                       as in an ACL file, or in the config file behind "user
//   =" rule = on | off | nopass | resetpass | >password | <password | #hash | !hash | reset
//        | "(" {part} ")" | clearselectors          selectors: sets of permissions beside the user's own
//        | sanitize-payload | skip-sanitize-payload   taken, and without a meaning here
//        | part
//   part = ~pattern | %R~pattern | %W~pattern | %RW~pattern | allkeys | resetkeys
//        | &pattern | allchannels | resetchannels
//        | +command | -command | +command|sub | -command|sub | +command|first-argument
//        | +@category | -@category | allcommands | nocommands
//
// Pure values; knows the command table and no connection.
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

// Permissions that go together: a command is allowed where one selector allows it with all its keys and
// channels.
struct AclSelector {
  static constexpr size_t kMaxCommands = 512;
  std::bitset<kMaxCommands> commands;  // by the row's place in all_commands()
  bool later_commands = false;         // also those that are not yet there: it began with +@all
  absl::btree_map<size_t, std::vector<std::string>> first_arguments;  // commands allowed with these only
  bool all_keys = false;
  bool all_channels = false;
  std::vector<KeyPattern> keys;
  std::vector<std::string> channels;

  bool allows_everything() const;
};

struct AclUser {
  std::string name;
  bool enabled = false;
  bool nopass = false;                 // any password will do
  std::vector<std::string> passwords;  // SHA-256, hex digits in lower case
  AclSelector root;
  std::vector<AclSelector> selectors;
  bool unlimited = false;  // root allows everything: kept by set_user(), so that nothing need be checked
};

// Why a rule was not taken; `why` empty: all were.
struct AclRefusal {
  std::string rule;
  std::string why;
};

// Takes over all of the rules, or none of them.
AclRefusal set_user(AclUser& user, std::span<const std::string_view> rules);

// Joins the words of a selector that stands in several; false: `rules` ends in the middle of the one that
// is then left as the last.
bool join_selectors(std::span<const std::string_view> words, std::vector<std::string>& rules);

// "on #2bb8... ~key* resetchannels -@all +get": rules that make the same user again. The shortest list of
// categories and commands is looked for, as Redis 7.0 does: the order in which they were given is lost.
std::string describe_user(const AclUser& user);
std::string describe_commands(const AclSelector& selector);
std::string describe_keys(const AclSelector& selector);
std::string describe_channels(const AclSelector& selector);

// The place of a row in all_commands().
size_t row_index(const Command& command);

}  // namespace holdfast
