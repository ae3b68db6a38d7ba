// The rules of users: their description parses to the same user; and the tables that they use.
#include <doctest/doctest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/sha256.h"
#include "core/command/acl.h"
#include "core/command/acl_selector.h"
#include "core/command/command.h"
#include "core/command/key_access.h"

namespace holdfast {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

AclUser user_of(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  std::vector<std::string> rules;
  REQUIRE(join_selectors(std::vector<std::string_view>(words.begin(), words.end()), rules));
  AclUser user;
  const AclRefusal refusal = set_user(user, std::vector<std::string_view>(rules.begin(), rules.end()));
  CHECK_MESSAGE(refusal.why.empty(), refusal.rule << ": " << refusal.why);
  return user;
}

TEST_CASE("ACL: the description of a set of commands parses to the same set") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto commands = all_commands();
  for (int run = 0; run < 200; ++run) {
    std::vector<std::string> rules{random() % 2 == 0 ? "+@all" : "-@all"};
    for (auto n = random() % 12; n > 0; --n) {
      const std::string sign = random() % 2 == 0 ? "+" : "-";
      rules.push_back(random() % 2 == 0
                          ? sign + "@" + std::string(category_names()[random() % category_names().size()])
                          : sign + std::string(commands[random() % commands.size()].name));
    }
    AclUser user;
    REQUIRE(set_user(user, std::vector<std::string_view>(rules.begin(), rules.end())).why.empty());
    const AclUser again = user_of(describe_user(user));
    CHECK(again.root.commands == user.root.commands);
    CHECK(again.root.later_commands == user.root.later_commands);
    CHECK(describe_user(again) == describe_user(user));
  }
}

TEST_CASE("ACL: the description of a user's other rules parses to the same user") {
  const std::string text =
      "on >x >y ~a* %R~b %W~c %RW~d resetchannels &e &f* +get +ping|x (~g +@lock &h) (%R~i)";
  const AclUser user = user_of(text);
  CHECK(user.passwords.size() == 2);
  CHECK(user.selectors.size() == 2);
  CHECK(describe_user(user_of(describe_user(user))) == describe_user(user));
  CHECK(describe_user(user).find("~a* %R~b %W~c ~d resetchannels &e &f* -@all +get +ping|x (~g ") !=
        std::string::npos);
}

TEST_CASE("ACL: only a user with all permissions is unlimited") {
  CHECK(user_of("+@all ~* &*").unlimited);
  for (const char* rules :
       {"+@all ~*", "+@all &*", "~* &*", "+@all -get ~* &*", "+@all ~a &*", "+@all ~* &a"}) {
    CAPTURE(rules);
    CHECK_FALSE(user_of(rules).unlimited);
  }
}

TEST_CASE("ACL: a load() that fails changes nothing, and a user that stays keeps its place") {
  Acl acl("");
  REQUIRE(acl.load("user a on >x +get\nuser b on\n", "file").empty());
  const AclUser* a = acl.find("a");
  CHECK(acl.load("user c on\nuser d +nosuch\n", "file").find("file:2: ") == 0);
  CHECK(acl.find("c") == nullptr);
  CHECK(acl.find("a") == a);
  REQUIRE(acl.load("user a on >x +get\nuser b off\n", "file").empty());
  CHECK(acl.find("a") == a);
  CHECK(acl.allows_unauthenticated());
  REQUIRE(acl.load("", "file").empty());
  CHECK(acl.users().size() == 1);
}

TEST_CASE("ACL: a password is checked by its hash, and only for a user that is on") {
  Acl acl("pw");
  CHECK_FALSE(acl.allows_unauthenticated());
  CHECK(acl.authenticate("default", "pw") == acl.find("default"));
  CHECK(acl.authenticate("default", "pw2") == nullptr);
  CHECK(acl.authenticate("default", "") == nullptr);
  CHECK(acl.authenticate("other", "pw") == nullptr);
  REQUIRE(acl.load("user default off >pw\nuser a on\n", "file").empty());
  CHECK(acl.authenticate("default", "pw") == nullptr);
  CHECK(acl.authenticate("a", "") == nullptr);  // it has no password, and is not nopass
}

TEST_CASE("SHA-256: gives the digests of FIPS 180-2") {
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("key access: every command with keys declares its access to them") {
  for (const Command& c : all_commands()) {
    CAPTURE(c.name);
    const bool has_keys = c.first_key != 0 || (c.flags & (kMovableKeys | kCountedKeys)) != 0;
    CHECK(has_keys == !widest_key_flags(c, 0).empty());
    if (!has_keys || widest_key_flags(c, 0) == "not_key") continue;
    const bool writes =
        ((access_needed(widest_key_flags(c, 0)) | access_needed(widest_key_flags(c, 1))) & kWritten) != 0;
    const bool script = (c.flags & kMovableKeys) != 0;
    CHECK((script ? (c.flags & kReadOnly) == 0 : (c.flags & kWrite) != 0) == writes);
  }
}

}  // namespace
}  // namespace holdfast
