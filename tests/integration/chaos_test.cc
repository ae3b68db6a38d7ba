// Five servers, of which too many are down and come up again. Also tests that the checks of the chaos tests
// find faults.
#include <doctest/doctest.h>

#include <csignal>
#include <future>

#include "chaos_record.h"
#include "chaos_servers.h"
#include "client.h"
#include "holdfast/client.h"

namespace holdfast::integration {

namespace {

using Locks = holdfast::Client;
using Verdict = holdfast::Outcome;
using namespace std::chrono_literals;

bool is_free(const Server& server, const std::string& key) {
  return Client(server).ask("LOCKS INFO " + key) == "nil-array";
}

}  // namespace

TEST_CASE(
    "chaos: with three of five servers down no client gets the lock; with one up again a waiter does") {
  for (const bool killed : {true, false}) {
    ChaosServers servers({0h, 0h, 0h, 0h, 0h}, 1, {});
    Locks client(servers.place("timeout=300"));
    for (size_t i = 0; i < 3; ++i) killed ? servers.kill(i) : servers.stop(i);
    CHECK(client.try_lock("k").outcome == Verdict::kUnreachable);
    std::future<Result<Hold>> waiting = client.lock_future("k");
    CHECK(waiting.wait_for(500ms) == std::future_status::timeout);
    servers.revive(1);
    REQUIRE(waiting.wait_for(kPatience) == std::future_status::ready);
    Result<Hold> acquired = waiting.get();
    CHECK(acquired.ok());
    CHECK(acquired->unlock().ok());
  }
}

TEST_CASE("chaos: resumed servers keep a hold whose release they missed no longer than its TTL") {
  ChaosServers servers({0h, 0h, 0h, 0h, 0h}, 1, {});
  {
    Locks client(servers.place("timeout=300"));
    CHECK(client.lock("other")->unlock().ok());  // connected
    servers.stop(0);
    servers.stop(4);
    LockOptions options;
    options.ttl = 3s;
    Result<Hold> acquired = client.lock("k", options);
    REQUIRE(acquired.ok());
    CHECK(acquired->unlock().ok());
  }
  servers.revive(0);
  servers.revive(4);
  for (const size_t i : {0, 4}) {
    Client control(servers.at(i));
    CHECK(std::stoll(control.ask("PTTL k")) <= 3000);
    until("it is free", [&] { return is_free(servers.at(i), "k"); });
  }
}

TEST_CASE("chaos: tokens grow although servers are killed and their clocks are set back") {
  const TempFolder folder;
  uint64_t last = 0;
  for (const auto hours : {0h, -30h, 12h, -300h}) {
    Launch launch{{"--dir", (folder.path() / "data").string()}, with_clock(folder, hours)};
    Server server(std::move(launch));
    Locks client("quorum://127.0.0.1:" + std::to_string(server.port()));
    for (int i = 0; i < 3; ++i) {
      Result<Hold> acquired = client.lock("k");
      REQUIRE_MESSAGE(acquired.ok(), acquired.message);
      CHECK(acquired->token() > last);
      last = acquired->token();
      CHECK(acquired->unlock().ok());
    }
    server.stop(SIGKILL);
  }
}

TEST_CASE("chaos: the checks find lost updates and tokens out of order") {
  CHECK(faults_of_writes({{1, 0, 5}, {2, 1, 6}}, 2).empty());
  CHECK_FALSE(faults_of_writes({{1, 0, 5}, {1, 0, 6}}, 1).empty());  // both had read 0
  CHECK_FALSE(faults_of_writes({{1, 0, 5}, {2, 1, 5}}, 2).empty());
  CHECK_FALSE(faults_of_writes({{1, 0, 5}}, 2).empty());
}

TEST_CASE("chaos: the checks find overlapping holds, repeated tokens, and holds without a quorum") {
  const Held first{5, 0, 10, 20, true};
  CHECK(faults_of_holds({first, {6, 5, 21, 30, true}}, {{40, 50}}).empty());
  CHECK_FALSE(faults_of_holds({first, {6, 5, 15, 30, true}}, {}).empty());
  CHECK(faults_of_holds({first, {6, 5, 15, 30, false}}, {}).empty());
  CHECK_FALSE(faults_of_holds({first, {5, 5, 21, 30, true}}, {}).empty());
  CHECK_FALSE(faults_of_holds({first, {4, 21, 25, 30, true}}, {}).empty());
  CHECK_FALSE(faults_of_holds({{5, 41, 45, 60, true}}, {{40, 50}}).empty());
}

}  // namespace holdfast::integration
