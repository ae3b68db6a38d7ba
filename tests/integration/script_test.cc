// Scripts on the real server: long scripts, malicious scripts, and scripts that release a lock with
// waiters.
#include <doctest/doctest.h>
#include <csignal>

#include <string>
#include <vector>

#include "integration/client.h"
#include "integration/server_harness.h"

namespace holdfast::integration {
namespace {

const std::string kBusy =
    "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

// A server that replies -BUSY to other clients soon during a script.
Server impatient() { return Server({"--busy-reply-threshold", "20"}); }

// Repeats SCRIPT KILL until a script exceeds the busy threshold.
std::string kill_when_busy(Client& client) {
  std::string answer;
  until("a script exceeds the busy threshold", [&] {
    answer = client.ask("SCRIPT KILL");
    return answer.find("NOTBUSY") == std::string::npos;
  });
  return answer;
}

TEST_CASE(
    "a script over its time: other clients get -BUSY until SCRIPT KILL, and its client gets an error") {
  const Server server = impatient();
  Client looping(server);
  Client other(server);
  looping.send("EVAL 'while true do end' 0\r\nPING\r\n");
  until("other clients get replies", [&] { return other.ask("PING") == kBusy; });
  CHECK(other.ask("GET k") == kBusy);
  CHECK(other.ask("MULTI") == "+OK");
  CHECK(other.ask("SET k v") == kBusy);
  CHECK(other.ask("EXEC").find("-EXECABORT Transaction discarded because of: BUSY") == 0);
  CHECK(other.ask("SCRIPT KILL") == "+OK");
  CHECK(looping.reply().find("-ERR Script killed by user with SCRIPT KILL... script: ") == 0);
  CHECK(looping.reply() == "+PONG");  // the requests after the script only waited
  CHECK(other.ask("PING") == "+PONG");
}

TEST_CASE("SCRIPT KILL: no pcall, coroutine or error handler of a script outlives it") {
  const Server server = impatient();
  for (const std::string body : {
           "while true do pcall(function() while true do end end) end",
           "while true do local f = coroutine.wrap(function() while true do end end) pcall(f) end",
           "while true do xpcall(function() error(1) end, function() while true do end end) end",
           "local t = {5, 4, 3} while true do table.sort(t, function(a, b) return a < b end) end",
           "while true do string.gsub('aaaa', 'a', function() return 'b' end) end",
       }) {
    CAPTURE(body);
    Client looping(server);
    Client other(server);
    looping.send("EVAL \"" + body + "\" 0\r\n");
    CHECK(kill_when_busy(other) == "+OK");
    CHECK(looping.reply().find("Script killed by user") != std::string::npos);
    CHECK(other.ask("PING") == "+PONG");
  }
}

TEST_CASE(
    "a script that has written cannot be killed: it continues, and other clients see all of its writes") {
  const Server server = impatient();
  Client writing(server);
  Client other(server);
  writing.send(
      "EVAL \"redis.call('set', 'a', 1) for i = 1, 3e7 do end redis.call('set', 'b', 2) return 'done'\" "
      "0\r\n");
  CHECK(kill_when_busy(other).find("-UNKILLABLE Sorry the script already executed write commands") == 0);
  CHECK(writing.reply() == "\"done\"");
  CHECK(other.ask("MGET a b") == "[\"1\", \"2\"]");
}

TEST_CASE("script-timeout: a script that has not written ends by itself") {
  const Server server({"--busy-reply-threshold", "20", "--script-timeout", "100"});
  Client client(server);
  CHECK(client.ask("EVAL 'while true do end' 0")
            .find("-ERR Script killed: it ran for longer than "
                  "script-timeout allows.") == 0);
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("a script in a transaction can be killed too, and the rest of the transaction runs") {
  const Server server = impatient();
  Client client(server);
  Client other(server);
  for (const std::string line : {"MULTI", "SET a 1", "EVAL 'while true do end' 0", "SET b 2"})
    client.ask(line);
  client.send("EXEC\r\n");
  CHECK(kill_when_busy(other) == "+OK");
  const std::string reply = client.reply();
  CHECK(reply.find("[+OK, -ERR Script killed by user") == 0);
  CHECK(other.ask("MGET a b") == "[\"1\", \"2\"]");
}

TEST_CASE("a client that disconnects while its script runs loses only its session") {
  const Server server = impatient();
  Client other(server);
  {
    Client looping(server);
    REQUIRE(token_of(looping.ask("LOCK k alice 0 SESSION"), "alice") > 0);
    looping.send("EVAL 'while true do end' 0\r\n");
    until("other clients get replies", [&] { return other.ask("PING") == kBusy; });
    looping.reset();
  }
  CHECK(other.ask("PING") == kBusy);
  CHECK(other.ask("SCRIPT KILL") == "+OK");
  until("the session has ended", [&] { return token_of(other.ask("LOCK k bob 0"), "bob") > 0; });
}

TEST_CASE("SIGTERM ends a server whose script does not end") {
  Server server = impatient();
  Client looping(server);
  Client other(server);
  looping.send("EVAL 'while true do end' 0\r\n");
  until("other clients get replies", [&] { return other.ask("PING") == kBusy; });
  CHECK(server.stop(SIGTERM) == 0);
}

TEST_CASE("script bombs: each gets an error, and does not affect the server or the next script") {
  const Server server({"--script-memory-limit", "32mb"});
  Client client(server);
  for (const std::string body : {
           "return string.rep('x', 1e10)",
           "return string.rep('', 2147483647)",
           "local s = 'x' while true do s = s .. s end",
           "local t = {} while true do t[#t + 1] = {} end",
           "local t = {} for i = 1, 1e9 do t[i] = i end",
           "local function f() return f() + 1 end return f()",
           "local function f() return pcall(f) end f() error('deep')",
           "error({})",
           "error(setmetatable({}, {__tostring = function() error('again') end}))",
           "return xpcall(function() error('a') end, function() error('b') end), error('c')",
           "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x",
           "local t = setmetatable({}, {__newindex = function(t, k, v) t[k] = v end}) t.x = 1",
           "local t = {} t[1] = t return t",
           "return string.find('a', string.rep('.-', 100000))",
           "return loadstring(string.dump(function() return 1 end))()",
           "getmetatable('').__index.upper = nil",
           "string.upper = nil",
           "rawset(string, 'upper', nil)",
           "setmetatable(_G, {})",
           "table.insert(redis, 1)",
           "redis.call = nil",
           "_G = nil",
           "x = 1",
           "KEYS = nil",
           "return redis.call('get', {})",
           "return redis.call()",
       }) {
    CAPTURE(body);
    const std::string reply = client.ask("EVAL \"" + body + "\" 0");
    CHECK((reply.starts_with("-") || reply == "\"\""));
    CHECK(client.ask("EVAL \"return {string.upper('a'), #KEYS, type(redis.call), x_is_unknown == nil}\" 0")
              .starts_with("-ERR user_script:1: Script attempted to access nonexistent global variable"));
    CHECK(client.ask("EVAL \"return {string.upper('a'), #KEYS, type(redis.call), type(_G)}\" 0") ==
          "[\"A\", 0, \"function\", \"table\"]");
  }
}

TEST_CASE("a compare-and-delete script hands the lock to the waiter at once, with its token") {
  const Server server;
  Client library(server);
  Client native(server);
  REQUIRE(library.ask("SET k tok NX PX 60000") == "+OK");
  native.send("LOCK k me 10000 WAIT 0\r\n");
  until_blocked(library, 1);
  const std::string release =
      "EVAL \"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return "
      "0\" 1 k ";
  CHECK(library.ask(release + "other") == "0");
  CHECK(native.heard_nothing());
  CHECK(library.ask(release + "tok") == "1");
  CHECK(token_of(native.reply(), "me") > 0);
  CHECK(library.ask("SET k tok2 NX PX 60000") == "nil");
}

}  // namespace
}  // namespace holdfast::integration
