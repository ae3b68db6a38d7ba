// Locks over real connections: the order of grants, and the holds and waits of clients that disconnect.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "client.h"
#include "crowd.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

std::string owner_of(size_t who) { return "w" + std::to_string(who); }

void wait_for_lock(Crowd& crowd, size_t who, const std::string& options = "") {
  crowd.send(who, "LOCK k " + owner_of(who) + " 0 " + options + " WAIT 0");
}

// Puts all connections of the crowd into the queue of k, in the order of their numbers.
void queue_up(Crowd& crowd, Client& control) {
  for (size_t who = 0; who < crowd.size(); ++who) {
    wait_for_lock(crowd, who);
    until_waiting(control, static_cast<int64_t>(who) + 1);
  }
}

// Checks that the next reply of the crowd is a grant to this connection. Returns its token.
int64_t hear_grant(Crowd& crowd, size_t who) {
  const Heard heard = crowd.hear();
  CHECK(heard.who == who);
  return token_of(heard.reply, owner_of(who));
}

TEST_CASE("1,000 connections in LOCK k WAIT 0: each UNLOCK grants exactly the next, with one reply") {
  const Server server;
  Client control(server);
  Crowd crowd(server, 1000);
  REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
  queue_up(crowd, control);
  CHECK(crowd.heard_nothing());
  REQUIRE(control.ask("UNLOCK k first") == "1");
  int64_t last_token = 0;
  for (size_t who = 0; who < crowd.size(); ++who) {
    const int64_t token = hear_grant(crowd, who);
    REQUIRE(token > last_token);
    last_token = token;
    REQUIRE(control.ask("GET k") == "\"" + owner_of(who) + "\"");
    REQUIRE(crowd.heard_nothing());
    REQUIRE(control.ask("UNLOCK k " + owner_of(who)) == "1");
  }
  CHECK(control.ask("GET k") == "nil");
  CHECK(info(control, "locks", "lock_queued_grants") == 1000);
}

TEST_CASE("waiters that close or reset their connections leave the queue, the others keep their order") {
  const Server server;
  Client control(server);
  Crowd crowd(server, 90);
  REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
  queue_up(crowd, control);
  for (size_t who = 0; who < crowd.size(); who += 3) {
    crowd.close(who);
    crowd.reset(who + 1);
  }
  until_waiting(control, 30);
  REQUIRE(control.ask("UNLOCK k first") == "1");
  for (size_t who = 2; who < crowd.size(); who += 3) {
    REQUIRE(hear_grant(crowd, who) > 0);
    REQUIRE(crowd.heard_nothing());
    REQUIRE(control.ask("UNLOCK k " + owner_of(who)) == "1");
  }
  CHECK(control.ask("GET k") == "nil");
}

TEST_CASE("an owner that repeats its wait on a new connection keeps its place when the old one closes") {
  const Server server;
  Client control(server);
  Crowd crowd(server, 4);
  REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
  for (size_t who = 0; who < 3; ++who) {
    wait_for_lock(crowd, who);
    until_waiting(control, static_cast<int64_t>(who) + 1);
  }
  crowd.send(3, "LOCK k w0 0 WAIT 0");
  until_waiting(control, 4);
  crowd.close(0);
  until_waiting(control, 3);
  REQUIRE(control.ask("UNLOCK k first") == "1");
  const Heard heard = crowd.hear();
  CHECK(heard.who == 3);
  CHECK(token_of(heard.reply, "w0") > 0);
}

TEST_CASE(
    "consecutive readers are granted together, and the writer behind them only after the last release") {
  const Server server;
  Client control(server);
  Crowd crowd(server, 101);
  REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
  for (size_t who = 0; who < 100; ++who) wait_for_lock(crowd, who, "SHARED");
  until_waiting(control, 100);
  wait_for_lock(crowd, 100);
  until_waiting(control, 101);
  REQUIRE(control.ask("UNLOCK k first") == "1");
  for (size_t granted = 0; granted < 100; ++granted) CHECK(crowd.hear().who != 100);
  for (size_t who = 0; who < 100; ++who) {
    REQUIRE(crowd.heard_nothing());
    REQUIRE(control.ask("UNLOCK k " + owner_of(who)) == "1");
  }
  CHECK(hear_grant(crowd, 100) > 0);
}

TEST_CASE("a waiter that disconnects at the moment of its grant does not keep a SESSION lock") {
  const Server server;
  Client control(server);
  for (int round = 0; round < 50; ++round) {
    Crowd pair(server, 2);
    REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
    wait_for_lock(pair, 0, "SESSION");
    until_waiting(control, 1);
    wait_for_lock(pair, 1, "SESSION");
    until_waiting(control, 2);
    control.send("UNLOCK k first\r\n");
    pair.reset(0);  // before or after its grant, by chance
    REQUIRE(control.reply() == "1");
    REQUIRE(hear_grant(pair, 1) > 0);
    REQUIRE(control.ask("DEL k") == "1");
  }
}

// Ends the holder's connection and expects the waiter to be granted.
template <typename End>
void check_session_ends(const Server& server, const End& end) {
  Client holder(server);
  Client waiter(server);
  Client control(server);
  const std::string id = holder.ask("CLIENT ID");
  REQUIRE(token_of(holder.ask("LOCK k alice 0 SESSION"), "alice") > 0);
  REQUIRE(token_of(holder.ask("LOCK stays alice 0"), "alice") > 0);
  waiter.send("LOCK k bob 0 WAIT 0\r\n");
  until_waiting(control, 1);
  end(holder, control, id);
  CHECK(token_of(waiter.reply(), "bob") > 0);
  CHECK(control.ask("GET stays") == "\"alice\"");
}

TEST_CASE("a SESSION hold ends when its connection is closed") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client&, const std::string&) { holder.close(); });
}

TEST_CASE("a SESSION hold ends when its connection is reset") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client&, const std::string&) { holder.reset(); });
}

TEST_CASE("a SESSION hold ends when its connection sends no more") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client&, const std::string&) { holder.half_close(); });
}

TEST_CASE("a SESSION hold ends when its connection is killed by CLIENT KILL") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client& control, const std::string& id) {
    CHECK(control.ask("CLIENT KILL ID " + id) == "1");
    CHECK(holder.reply() == "(closed)");
  });
}

TEST_CASE("a SESSION hold ends when its connection is killed, though it reads none of its replies") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client& control, const std::string& id) {
    REQUIRE(control.ask("SET large " + std::string(60000, 'x')) == "+OK");
    for (int i = 0; i < 500; ++i) holder.send(frame({"GET", "large"}));
    CHECK(control.ask("CLIENT KILL ID " + id) == "1");
  });
}

TEST_CASE("a client that kills itself by CLIENT KILL gets the reply before the connection closes") {
  const Server server;
  Client client(server);
  client.send("CLIENT KILL ID " + client.ask("CLIENT ID") + " SKIPME no\r\nPING\r\n");
  CHECK(client.read_to_end() == ":1\r\n");
}

TEST_CASE("a SESSION hold ends when its connection sends a broken frame") {
  const Server server;
  check_session_ends(server, [](Client& holder, Client&, const std::string&) { holder.send("*x\r\n"); });
}

TEST_CASE("session-grace: an owner that reconnects in time keeps its hold") {
  const Server server({"--session-grace", "600000"});
  Client control(server);
  Client again(server);
  int64_t token = 0;
  {
    Client holder(server);
    token = token_of(holder.ask("LOCK k alice 0 SESSION"), "alice");
  }
  until("the first connection is closed",
        [&] { return info(control, "clients", "connected_clients") == 2; });
  CHECK(control.ask("LOCK k bob 0") == "nil-array");
  CHECK(token_of(again.ask("LOCK k alice 0 SESSION"), "alice") == token);
}

TEST_CASE("session-grace: a hold ends after its grace, and the waiter is granted") {
  const Server server({"--session-grace", "100"});
  Client waiter(server);
  Client holder(server);
  REQUIRE(token_of(holder.ask("LOCK k alice 0 SESSION"), "alice") > 0);
  holder.reset();
  CHECK(token_of(waiter.ask("LOCK k bob 0 WAIT 0"), "bob") > 0);
}

TEST_CASE("a waiter is granted when the hold expires, without any request") {
  const Server server;
  Client waiter(server);
  REQUIRE(token_of(waiter.ask("LOCK k alice 100"), "alice") > 0);
  CHECK(token_of(waiter.ask("LOCK k bob 0 WAIT 0"), "bob") > 0);
}

// How often the server's loop has slept.
long sleeps(const Server& server) {
  std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) return std::stol(line.substr(line.find(':') + 1));
  }
  return -1;
}

TEST_CASE("busy-poll: the server does not sleep while it polls, handles expiry on time, and stops") {
  const Server server;
  Client client(server);
  REQUIRE(token_of(client.ask("LOCK k alice 0"), "alice") > 0);
  const auto sleeps_of_a_wait = [&] {
    const long before = sleeps(server);
    REQUIRE(client.ask("LOCK k bob 0 WAIT 100") == "nil-array");
    return sleeps(server) - before;
  };
  CHECK(sleeps_of_a_wait() > 0);
  REQUIRE(client.ask("CONFIG SET busy-poll 1000000") == "+OK");
  CHECK(sleeps_of_a_wait() == 0);
  CHECK(client.ask("CONFIG SET busy-poll 1000001").starts_with("-ERR"));
  REQUIRE(client.ask("RENEW k alice 100") == "1");
  CHECK(token_of(client.ask("LOCK k bob 0 WAIT 0"), "bob") > 0);
}

TEST_CASE("a wait gets its reply at its timeout, without any request") {
  const Server server;
  Client client(server);
  REQUIRE(token_of(client.ask("LOCK k alice 0"), "alice") > 0);
  CHECK(client.ask("LOCK k bob 0 WAIT 100") == "nil-array");
  CHECK(client.ask("HELLO 3").starts_with("{"));
  CHECK(client.ask("LOCK k bob 0 WAIT 100") == "null");
}

TEST_CASE("commands pipelined behind a LOCK that waits run after it, in order") {
  const Server server;
  Client control(server);
  Client client(server);
  REQUIRE(token_of(control.ask("LOCK k alice 0"), "alice") > 0);
  client.send("SET before 1\r\nLOCK k bob 0 WAIT 0\r\nSET behind 1\r\nGET k\r\nUNLOCK k bob\r\n");
  CHECK(client.reply() == "+OK");
  until_blocked(control, 1);
  CHECK(control.ask("EXISTS before") == "1");
  CHECK(control.ask("EXISTS behind") == "0");
  CHECK(client.heard_nothing());
  CHECK(control.ask("UNLOCK k alice") == "1");
  CHECK(token_of(client.reply(), "bob") > 0);
  CHECK(client.reply() == "+OK");
  CHECK(client.reply() == "\"bob\"");
  CHECK(client.reply() == "1");
}

TEST_CASE("a chain of 500 pipelined waits, each granted by the release before it") {
  const Server server;
  Client control(server);
  Crowd crowd(server, 500);
  REQUIRE(token_of(control.ask("LOCK k first 0"), "first") > 0);
  for (size_t who = 0; who < crowd.size(); ++who) {
    wait_for_lock(crowd, who);
    crowd.send(who, "UNLOCK k " + owner_of(who));
  }
  until_waiting(control, 500);
  CHECK(control.ask("UNLOCK k first") == "1");
  std::vector<size_t> heard(crowd.size());
  for (size_t i = 0; i < 2 * crowd.size(); ++i) ++heard[crowd.hear().who];
  CHECK(heard == std::vector<size_t>(crowd.size(), 2));
  CHECK(control.ask("EXISTS k") == "0");
}

TEST_CASE("CLIENT UNBLOCK ends a wait as a timeout or with an error, and the connection continues") {
  const Server server;
  Client control(server);
  Client client(server);
  const std::string id = client.ask("CLIENT ID");
  REQUIRE(token_of(control.ask("LOCK k alice 0"), "alice") > 0);
  CHECK(control.ask("CLIENT UNBLOCK " + id) == "0");
  client.send("LOCK k bob 0 WAIT 0\r\nLOCK k bob 0 WAIT 0\r\nPING\r\n");
  until_blocked(control, 1);
  CHECK(control.ask("CLIENT UNBLOCK " + id) == "1");
  CHECK(client.reply() == "nil-array");
  until_blocked(control, 1);
  CHECK(control.ask("CLIENT UNBLOCK " + id + " ERROR") == "1");
  CHECK(client.reply() == "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
  CHECK(client.reply() == "+PONG");
}

TEST_CASE("ASYNC: one connection has 1,000 waits, and gets a message for each grant") {
  const Server server;
  Client control(server);
  Client client(server);
  CHECK(client.ask("HELLO 3").starts_with("{"));
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "k" + std::to_string(i);
    REQUIRE(token_of(control.ask("LOCK " + key + " alice 0"), "alice") > 0);
    REQUIRE(client.ask("LOCK " + key + " bob 0 WAIT 0 ASYNC") == "+QUEUED");
  }
  CHECK(client.ask("PING") == "+PONG");
  for (int i = 999; i >= 0; --i) {
    const std::string key = "k" + std::to_string(i);
    REQUIRE(control.ask("UNLOCK " + key + " alice") == "1");
    REQUIRE(client.reply().starts_with(">[\"lock\", \"granted\", \"" + key + "\", \"bob\", "));
  }
  CHECK(control.ask("DEL k7") == "1");
  CHECK(client.reply() == R"(>["lock", "lost", "k7", "bob"])");
}

TEST_CASE("ASYNC: a timeout and an expired hold are reported, without any request") {
  const Server server;
  Client client(server);
  CHECK(client.ask("HELLO 3").starts_with("{"));
  CHECK(token_of(client.ask("LOCK k alice 100 WAIT 0 ASYNC"), "alice") > 0);
  CHECK(client.ask("LOCK k bob 0 WAIT 10 ASYNC") == "+QUEUED");
  CHECK(client.reply() == R"(>["lock", "timeout", "k", "bob"])");
  CHECK(client.reply() == R"(>["lock", "lost", "k", "alice"])");
}

TEST_CASE("LOCKS REVOKE sends a message to the holder, and the hold continues") {
  const Server server;
  Client control(server);
  Client holder(server);
  CHECK(holder.ask("HELLO 3").starts_with("{"));
  CHECK(token_of(holder.ask("LOCK k alice 0 WAIT 0 ASYNC"), "alice") > 0);
  CHECK(control.ask("LOCKS REVOKE k") == "1");
  CHECK(holder.reply() == R"(>["lock", "revoke", "k", "alice"])");
  CHECK(control.ask("GET k") == "\"alice\"");
}

TEST_CASE("two owners that wait for each other: the second gets DEADLOCK at once") {
  const Server server;
  Client control(server);
  Client alice(server);
  Client bob(server);
  REQUIRE(token_of(alice.ask("LOCK a alice 0"), "alice") > 0);
  REQUIRE(token_of(bob.ask("LOCK b bob 0"), "bob") > 0);
  alice.send("LOCK b alice 0 WAIT 0\r\n");
  until_blocked(control, 1);
  CHECK(bob.ask("LOCK a bob 0 WAIT 0") ==
        "-DEADLOCK deadlock detected: the owner would wait for itself; release its locks and retry");
  CHECK(bob.ask("UNLOCK b bob") == "1");
  CHECK(token_of(alice.reply(), "alice") > 0);
}

}  // namespace
}  // namespace holdfast::integration
