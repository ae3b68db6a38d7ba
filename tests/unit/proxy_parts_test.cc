// The parts of the proxy that need no server: names of owners, what a majority says about a key, the table
// of commands, the holds that it remembers.
#include <doctest/doctest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proxy/commands.h"
#include "proxy/key_state.h"
#include "proxy/own_holds.h"
#include "proxy/owner_name.h"
#include "proxy/server_check.h"
#include "proxy/session_holds.h"

namespace holdfast::proxy {

namespace {

using client::Value;

std::optional<SeenKey> held(const std::string& owner, std::optional<int64_t> left = 1000,
                            uint64_t token = 5) {
  SeenKey seen;
  seen.kind = SeenKey::Kind::kKey;
  seen.holds.push_back({owner, token, "exclusive", left ? std::optional(DurationMs{*left}) : std::nullopt});
  return seen;
}

std::optional<SeenKey> free_key(bool delayed = false) {
  SeenKey seen;
  seen.kind = SeenKey::Kind::kKey;
  seen.delayed = delayed;
  return seen;
}

std::optional<SeenKey> failed() {
  SeenKey seen;
  seen.why = "no answer";
  return seen;
}

std::optional<SeenKey> hash() {
  SeenKey seen;
  seen.kind = SeenKey::Kind::kOtherType;
  return seen;
}

KeyState of_three(const std::vector<std::optional<SeenKey>>& seen) { return judge(seen, 2); }

KeyState::Kind kind_of(const std::vector<std::optional<SeenKey>>& seen) { return of_three(seen).kind; }

constexpr auto kHeld = KeyState::Kind::kHeld;
constexpr auto kFree = KeyState::Kind::kFree;
constexpr auto kUndecided = KeyState::Kind::kUndecided;

Value bulk(std::string text) { return {Value::Kind::kBulk, 0, std::move(text), {}}; }
Value number(int64_t n) { return {Value::Kind::kInteger, n, {}, {}}; }
Value array(std::vector<Value> elements) { return {Value::Kind::kArray, 0, {}, std::move(elements)}; }

OwnHold own(const std::string& key, int64_t end) {
  return {key, "v", "v~" + key + ".1", 1, DurationMs{1000}, TimeMs{end}};
}

}  // namespace

TEST_CASE("proxy: an owner on the servers shows the client's value, whatever bytes that has") {
  for (const std::string& value : {std::string("worker-1"), std::string(), std::string("a~b.3"),
                                   std::string("x\0\r\n~y", 6), std::string(480, 'v')}) {
    const std::string slot = new_slot(value);
    const std::string owner = slot + ".17";
    CHECK(slot.size() == value.size() + 1 + kRandomChars);
    CHECK(is_of_proxy(owner));
    CHECK(value_in(owner) == value);
    CHECK(is_attempt_of(owner, slot));
  }
}

TEST_CASE("proxy: no two acquisitions have one owner, also with equal values") {
  std::set<std::string> slots;
  for (int i = 0; i < 1000; ++i) slots.insert(new_slot("v"));
  CHECK(slots.size() == 1000);
}

TEST_CASE("proxy: an owner that no proxy made is the value itself") {
  for (const std::string_view owner :
       {"", "alice", "alice~", "alice~short.1", "alice~123456789012", "alice~123456789012.",
        "alice~123456789012.1x", "alice~1234567890123.1", "~", "0123456789abcdef0123456789abcdef.4"}) {
    INFO(owner);
    CHECK_FALSE(is_of_proxy(owner));
    CHECK(value_in(owner) == owner);
  }
  CHECK(value_in("~123456789012.1").empty());
}

TEST_CASE("proxy: an attempt belongs to one slot") {
  CHECK(is_attempt_of("v~aaaaaaaaaaaa.1", "v~aaaaaaaaaaaa"));
  CHECK_FALSE(is_attempt_of("v~aaaaaaaaaaaa", "v~aaaaaaaaaaaa"));
  CHECK_FALSE(is_attempt_of("v~aaaaaaaaaaaab.1", "v~aaaaaaaaaaaa"));
  CHECK_FALSE(is_attempt_of("v~bbbbbbbbbbbb.1", "v~aaaaaaaaaaaa"));
}

TEST_CASE("proxy: a key is held before, at and after a majority of answers") {
  CHECK(kind_of({std::nullopt, std::nullopt, std::nullopt}) == kUndecided);
  CHECK(kind_of({held("a"), std::nullopt, std::nullopt}) == kUndecided);
  CHECK(kind_of({held("a"), held("a"), std::nullopt}) == kHeld);
  CHECK(kind_of({held("a"), held("a"), held("a")}) == kHeld);
  CHECK(kind_of({held("a"), held("a"), held("b")}) == kHeld);
  CHECK(kind_of({held("a"), free_key(), held("a")}) == kHeld);
  CHECK(kind_of({held("a"), failed(), held("a")}) == kHeld);
}

TEST_CASE("proxy: a key is free only if no answer that is missing can make a majority") {
  CHECK(kind_of({free_key(), std::nullopt, std::nullopt}) == kUndecided);
  CHECK(kind_of({free_key(), free_key(), std::nullopt}) == kFree);
  CHECK(kind_of({free_key(), failed(), free_key()}) == kFree);
  CHECK(kind_of({free_key(), held("a"), std::nullopt}) == kUndecided);
  CHECK(kind_of({free_key(), held("a"), failed()}) == kUndecided);
  CHECK(kind_of({free_key(), held("a"), free_key()}) == kFree);
  CHECK(kind_of({held("a"), held("b"), std::nullopt}) == kUndecided);
  CHECK(kind_of({held("a"), held("b"), held("c")}) == kFree);
  CHECK(kind_of({failed(), failed(), free_key()}) == kUndecided);
  CHECK(kind_of({failed(), failed(), failed()}) == kUndecided);
}

TEST_CASE("proxy: a key of another type on a majority is of that type") {
  CHECK(kind_of({hash(), hash(), std::nullopt}) == KeyState::Kind::kOtherType);
  CHECK(kind_of({hash(), free_key(), std::nullopt}) == kUndecided);
  CHECK(kind_of({hash(), free_key(), free_key()}) == kFree);
}

TEST_CASE("proxy: a hold lasts for as long as a majority has it") {
  CHECK(of_three({held("a", 300), held("a", 100), held("a", 200)}).holds[0].left == DurationMs{200});
  CHECK(of_three({held("a", 300), held("a", 100), free_key()}).holds[0].left == DurationMs{100});
  CHECK(of_three({held("a", std::nullopt), held("a", 100), held("a", 50)}).holds[0].left ==
        DurationMs{100});
  CHECK_FALSE(of_three({held("a", std::nullopt), held("a", std::nullopt), held("a", 1)}).holds[0].left);
}

TEST_CASE("proxy: the token of a hold is the one that a majority has") {
  CHECK(of_three({held("a", 1, 7), held("a", 1, 7), held("a", 1, 9)}).holds[0].token == 7);
  CHECK(of_three({held("a", 1, 7), held("a", 1, 7), held("a", 1, 3)}).holds[0].token == 7);
  CHECK(of_three({held("a", 1, 7), held("a", 1, 3), free_key()}).holds[0].token == 3);
}

TEST_CASE("proxy: lock-delays count where they keep a majority from being had") {
  CHECK_FALSE(of_three({free_key(true), free_key(), free_key()}).delayed);
  CHECK(of_three({free_key(true), free_key(true), free_key()}).delayed);
  CHECK(of_three({free_key(true), free_key(true), std::nullopt}).delayed);
}

TEST_CASE("proxy: an answer to LOCKS INFO is read, and an error is no answer") {
  const Value holder = array({bulk("owner"), bulk("a"), bulk("token"), number(9), bulk("mode"),
                              bulk("exclusive"), bulk("ttl"), number(50)});
  const SeenKey seen = read_info(array({bulk("delay"), number(3), bulk("holders"), array({holder})}));
  CHECK(seen.kind == SeenKey::Kind::kKey);
  CHECK(seen.delayed);
  REQUIRE(seen.holds.size() == 1);
  CHECK(seen.holds[0].token == 9);
  CHECK(seen.holds[0].left == DurationMs{50});
  CHECK(read_info({Value::Kind::kNull, 0, {}, {}}).holds.empty());
  CHECK(read_info({Value::Kind::kNull, 0, {}, {}}).kind == SeenKey::Kind::kKey);
  CHECK(read_info({Value::Kind::kLost, 0, "why", {}}).kind == SeenKey::Kind::kNoAnswer);
  CHECK(read_info({Value::Kind::kError, 0, "NOPERM", {}}).kind == SeenKey::Kind::kNoAnswer);
  CHECK(read_info({Value::Kind::kError, 0, "WRONGTYPE x", {}}).kind == SeenKey::Kind::kOtherType);
}

TEST_CASE("proxy: each command with a key that has no row is refused, and one without a key runs here") {
  CHECK(how_to_run("get", true) == How::kOnCopy);
  CHECK(how_to_run("hset", true) == How::kRefused);
  CHECK(how_to_run("renew", true) == How::kRenew);
  CHECK(how_to_run("unlock", true) == How::kUnlock);
  CHECK(how_to_run("lock", true) == How::kHere);
  CHECK(how_to_run("ping", false) == How::kHere);
  CHECK(how_to_run("eval", true) == How::kOnCopy);
  CHECK(how_to_run("eval", false) == How::kHere);
  CHECK(how_to_run("exec", false) == How::kHere);
  for (const std::string_view name : {"keys", "scan", "flushall", "watch", "locks|list", "client|tracking"})
    CHECK(how_to_run(name, false) == How::kRefused);
}

TEST_CASE("proxy: a script may run what the proxy can make on the servers, and no more") {
  CHECK(refuse_in_script("get", true).empty());
  CHECK(refuse_in_script("echo", true).empty());
  for (const std::string_view name : {"hget", "lock", "unlock", "publish", "select", "keys", "flushall"}) {
    INFO(name);
    CHECK_FALSE(refuse_in_script(name, true).empty());
  }
  CHECK(refuse_in_script("publish", false).empty());  // such a script runs once
  for (const std::string_view name : {"lock", "unlock", "keys", "flushall", "locks|list"}) {
    INFO(name);
    CHECK_FALSE(refuse_in_script(name, false).empty());
  }
}

TEST_CASE("proxy: a command that reads the TTL is known") {
  const auto depends = [](std::vector<std::string_view> argv) { return depends_on_ttl(argv[0], argv); };
  CHECK(depends({"pttl", "k"}));
  CHECK(depends({"persist", "k"}));
  CHECK(depends({"pexpire", "k", "1", "GT"}));
  CHECK_FALSE(depends({"pexpire", "k", "1"}));
  CHECK(depends({"set", "k", "v", "KeepTTL"}));
  CHECK_FALSE(depends({"set", "k", "v", "PX", "1"}));
  CHECK_FALSE(depends({"set", "k"}));
  CHECK_FALSE(depends({"get", "k"}));
  CHECK_FALSE(depends({"del", "k"}));
}

TEST_CASE("proxy: a remembered hold is found until its end, by its owner") {
  OwnHolds holds;
  holds.put(own("a", 100), TimeMs{0});
  REQUIRE(holds.find("a", TimeMs{99}) != nullptr);
  CHECK(holds.find("a", "v~a.1", TimeMs{99}) != nullptr);
  CHECK(holds.find("a", "v~a.2", TimeMs{99}) == nullptr);
  holds.forget("a", "v~a.2");
  CHECK(holds.size() == 1);
  CHECK(holds.find("a", TimeMs{100}) == nullptr);
  CHECK(holds.size() == 0);
  holds.put(own("a", 200), TimeMs{100});
  holds.put(own("a", 300), TimeMs{100});
  CHECK(holds.size() == 1);
  CHECK(holds.find("a", TimeMs{299}) != nullptr);
  holds.forget("a", "v~a.1");
  CHECK(holds.size() == 0);
}

TEST_CASE("proxy: beyond the limit the hold that ends first is forgotten") {
  OwnHolds holds;
  for (size_t i = 0; i < OwnHolds::kMost; ++i)
    holds.put(own(std::to_string(i), static_cast<int64_t>(1000 + i)), TimeMs{0});
  CHECK(holds.size() == OwnHolds::kMost);
  holds.put(own("late", 1'000'000), TimeMs{0});
  CHECK(holds.size() == OwnHolds::kMost);
  CHECK(holds.find("0", TimeMs{0}) == nullptr);
  CHECK(holds.find("1", TimeMs{0}) != nullptr);
}

TEST_CASE("proxy: the SESSION holds of a connection end with it, and those that have ended are forgotten") {
  SessionHolds sessions;
  sessions.add(1, {"k", "a"}, TimeMs{100}, TimeMs{0});
  sessions.add(1, {"l", "b"}, TimeMs{100}, TimeMs{0});
  sessions.add(2, {"k", "c"}, TimeMs{100}, TimeMs{0});
  sessions.remove(1, {"l", "b"});
  CHECK(sessions.take(1) == std::vector<SessionHolds::Name>{{"k", "a"}});
  CHECK(sessions.take(1).empty());
  for (int64_t i = 0; i < 10'000; ++i) sessions.add(3, {"k", std::to_string(i)}, TimeMs{i + 10}, TimeMs{i});
  CHECK(sessions.count(3) <= SessionHolds::kFew);
  sessions.add(4, {"k", "a"}, TimeMs{10}, TimeMs{0});
  sessions.renew(4, {"k", "a"}, TimeMs{1'000'000});
  for (int64_t i = 0; i < 1000; ++i) sessions.add(4, {"l", std::to_string(i)}, TimeMs{i + 10}, TimeMs{i});
  CHECK(sessions.take(4).front() == SessionHolds::Name{"k", "a"});
}

TEST_CASE("proxy: a server that is a proxy, or that is named twice, is refused") {
  const std::vector<std::string> names{"a:1", "b:1", "c:1"};
  const auto beat = [](const char* id) { return std::optional(array({bulk(id), number(1)})); };
  const std::optional<Value> lost(Value{Value::Kind::kLost, 0, "why", {}});
  const std::optional<Value> proxy(Value{Value::Kind::kError, 0, refusal("locks|heartbeat"), {}});
  CHECK(refuse_servers(names, {beat("x"), beat("y"), beat("z")}).empty());
  CHECK(refuse_servers(names, {beat("x"), lost, lost}).empty());
  CHECK(refuse_servers(names, {beat("x"), lost, beat("x")}).find("a:1 and c:1 are one server") !=
        std::string::npos);
  CHECK(refuse_servers(names, {beat("x"), proxy, lost}).find("b:1 is a proxy") != std::string::npos);
}

}  // namespace holdfast::proxy
