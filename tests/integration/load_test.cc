// High load: 5,000 connections, and 200,000 keys that expire in the same 100 ms.
#include <doctest/doctest.h>

#include <string>

#include "client.h"
#include "crowd.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

std::string key_of(size_t number) { return "key:" + std::to_string(number); }

// Each connection of the crowd sends its line, and gets one reply that passes.
template <typename Line, typename Passes>
void everybody(Crowd& crowd, const Line& line, const Passes& passes) {
  for (size_t who = 0; who < crowd.size(); ++who) crowd.send(who, line(who));
  std::vector<size_t> heard(crowd.size());
  for (size_t i = 0; i < crowd.size(); ++i) {
    const Heard one = crowd.hear();
    ++heard[one.who];
    REQUIRE(passes(one.who, one.reply));
  }
  CHECK(heard == std::vector<size_t>(crowd.size(), 1));
}

TEST_CASE(
    "5,000 connections at once lock and unlock; when they disconnect, only SESSION locks are released") {
  const Server server({"--maxclients", "6000"});
  Client control(server);
  Crowd crowd(server, 5000);
  until("all are connected", [&] { return info(control, "clients", "connected_clients") == 5001; });
  const auto lock = [](size_t who) { return "LOCK " + key_of(who) + " me 0"; };
  const auto granted = [](size_t, const std::string& reply) { return token_of(reply, "me") > 0; };
  everybody(crowd, lock, granted);
  CHECK(control.ask("DBSIZE") == "5000");
  everybody(
      crowd, [](size_t who) { return "UNLOCK " + key_of(who) + " me"; },
      [](size_t, const std::string& reply) { return reply == "1"; });
  CHECK(control.ask("DBSIZE") == "0");
  everybody(
      crowd, [&](size_t who) { return lock(who) + (who % 2 == 0 ? " SESSION" : ""); }, granted);
  for (size_t who = 0; who < crowd.size(); ++who) who % 3 == 0 ? crowd.reset(who) : crowd.close(who);
  until("all connections are closed", [&] { return info(control, "clients", "connected_clients") == 1; });
  CHECK(control.ask("DBSIZE") == "2500");
  CHECK(control.ask("EXISTS key:0 key:1 key:4998 key:4999") == "2");
}

TEST_CASE("5,000 connections wait for one lock and disconnect: the queue is empty, and the lock works") {
  const Server server({"--maxclients", "6000"});
  Client control(server);
  REQUIRE(token_of(control.ask("LOCK k me 0"), "me") > 0);
  Crowd crowd(server, 5000);
  for (size_t who = 0; who < crowd.size(); ++who)
    crowd.send(who, "LOCK k w" + std::to_string(who) + " 0 WAIT 0");
  until_waiting(control, 5000);
  for (size_t who = 0; who < crowd.size(); ++who) who % 3 == 0 ? crowd.reset(who) : crowd.close(who);
  until_waiting(control, 0);
  CHECK(control.ask("UNLOCK k me") == "1");
  CHECK(token_of(control.ask("LOCK k me 0"), "me") > 0);
}

constexpr size_t kStorm = 200000;

// Writes kStorm keys that expire within 100 ms after `due_ms` of the wall clock. The lock `hot` expires
// after half of them.
void load_storm(Client& client, int64_t due_ms) {
  std::string input = frame({"SET", "hot", "alice", "PXAT", std::to_string(due_ms + 50)});
  std::string expected = "+OK\r\n";
  for (size_t i = 0; i < kStorm; ++i) {
    input += frame({"SET", key_of(i), "v", "PXAT", std::to_string(due_ms + static_cast<int64_t>(i % 100))});
    expected += "+OK\r\n";
  }
  REQUIRE(client.exchange(input, expected) == "");
}

int64_t wall_ms(Client& client) {
  const std::string reply = client.ask("TIME");  // ["seconds", "microseconds"]
  return std::stoll(reply.substr(2)) * 1000 + std::stoll(reply.substr(reply.find(", \"") + 3)) / 1000;
}

// On a slow machine the first keys may expire before the last is written: then retries with more time.
void load_storm_before_it_breaks(Client& client) {
  const std::string all = std::to_string(kStorm + 2);
  for (int64_t lead_ms = 2000; lead_ms < 60000; lead_ms *= 2) {
    load_storm(client, wall_ms(client) + lead_ms);
    if (client.ask("DBSIZE") == all) return;
    REQUIRE(client.ask("FLUSHALL") == "+OK");
    REQUIRE(client.ask("SET stays here") == "+OK");
  }
  FAIL("200,000 keys cannot be written before the first expires");
}

TEST_CASE(
    "200,000 keys expire in the same 100 ms: other requests are served, and then all keys are deleted") {
  const Server server;
  Client loader(server);
  REQUIRE(loader.ask("SET stays here") == "+OK");
  load_storm_before_it_breaks(loader);
  Client waiter(server);
  Client other(server);
  waiter.send("LOCK hot bob 0 WAIT 0\r\n");
  until_waiting(other, 1);
  size_t pings = 0;
  until("all keys have expired", [&] {
    ++pings;
    REQUIRE(other.ask("PING") == "+PONG");
    return other.ask("DBSIZE") == "2";
  });
  CHECK(pings > 1);
  CHECK(token_of(waiter.reply(), "bob") > 0);
  CHECK(other.ask("GET stays") == "\"here\"");
  CHECK(other.ask("GET hot") == "\"bob\"");
  CHECK(other.ask("SCAN 0 COUNT 1000000 MATCH key:*") == "[\"0\", []]");
}

}  // namespace
}  // namespace holdfast::integration
