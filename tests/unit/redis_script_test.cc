// The conversion of a request for Redis: scripts, their keys and arguments, and slots.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "client/transport/redis_script.h"
#include "core/base/hash_slot.h"
#include "core/base/sha1.h"
#include "core/codec/hold_codec.h"

namespace holdfast::client {
namespace {

using Kind = Translation::Kind;

const LeaseKeys kNoLeases = [](const std::string&) { return nullptr; };

std::string joined(const Argv& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

// Returns "script | keys | arguments", or the error.
std::string shown(const Argv& argv, const LeaseKeys& leases = kNoLeases) {
  const Translation what = translate(argv, leases);
  if (what.kind == Kind::kPlain) return "plain";
  if (what.kind == Kind::kRefused) return what.why;
  return what.call.script + " | " + joined(what.call.keys) + " | " + joined(what.call.argv);
}

}  // namespace

TEST_CASE("redis script: a key's slot is that of its hash tag, as in Redis Cluster") {
  CHECK(hash_tag("{user1000}.following") == "user1000");
  CHECK(hash_tag("foo{}{bar}") == "foo{}{bar}");
  CHECK(hash_tag("foo{{bar}}zap") == "{bar");
  CHECK(hash_tag("foo{bar}{zap}") == "bar");
  CHECK(hash_tag("a}b{c") == "a}b{c");
  CHECK(hash_slot("123456789") == 0x31C3);
  CHECK(hash_slot("") == 0);
  CHECK(hash_slot("foo") == 12182);
  CHECK(hash_slot("{foo}.bar") == hash_slot("foo"));
  for (const char* key : {"k", "seat:{a}", "a{b"}) CHECK(hash_slot(token_key(key)) == hash_slot(key));
}

TEST_CASE("redis script: each request becomes its script, with the key and its token key") {
  CHECK(shown({"LOCK", "k", "me", "100", "SHARED", "TOKEN", "7"}) ==
        "lock | k holdfast:token:{k}k | me 100 SHARED TOKEN 7");
  CHECK(shown({"renew", "k", "me"}) == "renew | k holdfast:token:{k}k | me");
  CHECK(shown({"UNLOCK", "s:{a}", "me"}) == "unlock | s:{a} holdfast:token:{a}s:{a} | me");
  CHECK(shown({"FENCE", "k", "me", "9"}) == "fence | k holdfast:token:{k}k | me 9");
  CHECK(shown({"LOCKS", "info", "k"}) == "locks_info | k holdfast:token:{k}k | ");
  CHECK(shown({"LOCKS", "BREAK", "k"}) == "break | k holdfast:token:{k}k | ");
  CHECK(shown({"LOCKS", "revoke", "k"}) == "revoke | k holdfast:token:{k}k | ");
  CHECK(shown({"PING"}) == "plain");
  CHECK(shown({"GET", "k"}) == "plain");
  CHECK(shown({}) == "plain");
}

TEST_CASE(
    "redis script: a lease is named by its first key, and its later requests by the keys of its grant") {
  CHECK(
      shown({"LEASE", "GRANT", "id", "100", "{t}a", "1", "b", "2"}) ==
      "lease_grant | holdfast:lease:{t}id {t}a holdfast:token:{t}{t}a b holdfast:token:{b}b | id 100 1 2");
  const std::map<std::string, Argv> known{{"id", {"L", "a", "T"}}};
  const LeaseKeys leases = [&](const std::string& id) {
    return known.contains(id) ? &known.at(id) : nullptr;
  };
  CHECK(shown({"LEASE", "CONFIRM", "id"}, leases) == "lease_confirm | L a T | id");
  CHECK(shown({"LEASE", "cancel", "id"}, leases) == "lease_cancel | L a T | id");
  CHECK(shown({"LEASE", "RENEW", "id", "50"}, leases) == "lease_renew | L a T | id 50");
  CHECK(shown({"LEASE", "CONFIRM", "other"}, leases).starts_with("NOLEASE "));
}

TEST_CASE("redis script: unsupported and unknown requests get an error") {
  for (const char* what : {"OWNED", "CHECK", ""})
    CHECK(shown({"LOCKS", what}).find("is not possible on Redis: ") != std::string::npos);
  CHECK(shown({"LEASE"}).find("is not possible on Redis: ") != std::string::npos);
  CHECK(shown({"LOCK"}) == "ERR wrong number of arguments for 'lock' command");
  CHECK(shown({"LOCKS", "INFO"}) == "ERR wrong number of arguments for 'locks|info' command");
  CHECK(shown({"LEASE", "GRANT", "id", "1", "k"}) ==
        "ERR wrong number of arguments for 'lease|grant' command");
  CHECK(shown({"LEASE", "GRANT", "id", "1", "k", "v", "w"}) ==
        "ERR wrong number of arguments for 'lease|grant' command");
}

TEST_CASE(
    "redis script: LOCKS LIST takes SCAN's options and a cursor of slot, node and SCAN's own cursor") {
  const Translation first = translate({"LOCKS", "list", "0", "MATCH", "a*", "count", "1001"}, kNoLeases);
  REQUIRE(first.kind == Kind::kList);
  CHECK(first.call.script == "locks_list");
  CHECK(joined(first.call.argv) == "MATCH a* count 1000");
  CHECK(text_of(first.from) == "0:0:");
  const Translation later = translate({"LOCKS", "LIST", "5461:77:[::1]:7000", "COUNT", "x"}, kNoLeases);
  REQUIRE(later.kind == Kind::kList);
  CHECK(later.from.slot == 5461);
  CHECK(later.from.scan == "77");
  CHECK(later.from.node == "[::1]:7000");
  CHECK(joined(later.call.argv) == "COUNT x");  // Redis reports its error
  CHECK(text_of(later.from) == "5461:77:[::1]:7000");
  for (const char* bad : {"", "x", "1", "1:2", "16384:0:n", "-1:0:n", ":0:n"})
    CHECK(shown({"LOCKS", "LIST", bad}) == "ERR invalid cursor");
  CHECK(read_list_cursor("16383:0:n"));
  for (const char* word : {"TYPE", "MATCH", "x"})
    CHECK(shown({"LOCKS", "LIST", "0", "COUNT", "5", word}) == "ERR syntax error");
  CHECK(shown({"LOCKS", "LIST", "0", "TYPE", "hash"}) == "ERR syntax error");
  CHECK(shown({"LOCKS", "LIST"}) == "ERR wrong number of arguments for 'locks|list' command");
}

TEST_CASE("redis script: a waiting LOCK becomes attempts with LEFT until its deadline") {
  const auto lock =
      waiting_lock({"LOCK", "k", "me", "100", "LIMIT", "3", "WAIT", "50", "SESSION", "TOKEN", "7"});
  REQUIRE(lock);
  CHECK(lock->key == "k");
  CHECK(lock->owner == "me");
  CHECK(lock->wait.count == 50);
  CHECK(joined(lock->mode) == "LIMIT 3");
  CHECK(joined(lock->attempt.argv) == "me 100 LIMIT 3 TOKEN 7 LEFT");
  CHECK(waiting_lock({"LOCK", "k", "me", "100", "token", "7", "WAIT", "5"})->mode.empty());
  CHECK_FALSE(waiting_lock({"LOCK", "k", "me", "100"}));
  CHECK_FALSE(waiting_lock({"LOCK", "k", "me", "100", "WAIT", "x"}));
  CHECK_FALSE(waiting_lock({"BLPOP", "k", "me", "100", "WAIT", "5"}));
}

TEST_CASE("redis script: all scripts are part of the program, whole, and named by their digest") {
  const ScriptCall call{"lease_grant", {"a", "b"}, {"c"}};
  const std::string text = std::string(script_file("common")).append(script_file("lease_common")) +
                           std::string(script_file("lease_grant"));
  CHECK(joined(eval_of(call)) == "EVAL " + text + " 2 a b c");
  CHECK(joined(evalsha_of(call)) == "EVALSHA " + sha1_hex(text) + " 2 a b c");
  CHECK(script_file("none").empty());
  for (const char* name : {"lock", "renew", "unlock", "fence", "locks_info", "locks_list", "break",
                           "revoke", "lease_confirm", "lease_cancel", "lease_renew"}) {
    CHECK(script_file(name).starts_with("-- "));
    CHECK(eval_of({name, {}, {}}).at(1).find("on_holdfast then return") != std::string::npos);
  }
}

}  // namespace holdfast::client
