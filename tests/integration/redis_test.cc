// The C++ library on stock Redis: the differences from Holdfast, and possible faults with Redis.
// locks_single_test.cc tests the common behaviour.
#include <doctest/doctest.h>

#include <csignal>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/transport/redis_script.h"
#include "core/base/hash_slot.h"
#include "core/codec/hold_codec.h"
#include "holdfast/lease.h"
#include "redis_rig.h"

namespace holdfast::integration {
namespace {

LockOptions unrenewed(milliseconds ttl = 30s) {
  LockOptions options = with_ttl(ttl);
  options.renew = false;
  return options;
}

LockOptions of_mode(Mode mode, uint32_t limit = 1) {
  LockOptions options = unrenewed();
  options.mode = mode;
  options.limit = limit;
  return options;
}

// Long enough to detect a client that polls.
void let_time_pass() { std::this_thread::sleep_for(1s); }

// The token of the first holder in a reply to LOCKS INFO.
uint64_t token_in(const Value& info) {
  return static_cast<uint64_t>(info.elements.at(9).elements.at(0).elements.at(3).integer);
}

std::string error_of(const Value& value) { return value.kind == Value::Kind::kError ? value.text : ""; }

}  // namespace

TEST_CASE("redis: readers share a lock, and a writer gets it after the last reader's release") {
  RedisServer server;
  Locks client(server.place());
  Result<Hold> one = client.try_lock("k", of_mode(Mode::kSharedLock));
  Result<Hold> two = client.try_lock("k", of_mode(Mode::kSharedLock));
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(two->token() > one->token());
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  std::future<Result<Hold>> writer = client.lock_future("k");
  server.await_waiting(1);
  CHECK(one->unlock().ok());
  CHECK(two->unlock().ok());
  const Result<Hold> granted = writer.get();
  CHECK(granted.ok());
  CHECK(granted->token() > two->token());
}

TEST_CASE("redis: a waiter sends no request until the release, and few requests after it") {
  RedisServer server;
  Locks client(server.place());
  Result<Hold> first = client.lock("k", unrenewed());
  std::future<Result<Hold>> next = client.lock_future("k", unrenewed());
  server.await_waiting(1);
  let_time_pass();
  const int64_t before = server.scripts();
  let_time_pass();
  CHECK(server.scripts() == before);
  CHECK(first->unlock().ok());
  const Result<Hold> second = next.get();
  REQUIRE(second.ok());
  CHECK(server.scripts() - before <= 4);  // the release, an attempt, and the LOCK that takes over the grant
}

TEST_CASE("redis: the waiters are granted after another program deletes the key, which sends no event") {
  RedisServer server;
  Locks client(server.place());
  server.ask("SET k foreign");
  std::future<Result<Hold>> first = client.lock_future("k", unrenewed());
  std::future<Result<Hold>> second = client.lock_future("k", unrenewed());
  server.await_waiting(1);
  let_time_pass();
  server.ask("DEL k");
  until("a grant", [&] {
    return first.wait_for(0s) == std::future_status::ready ||
           second.wait_for(0s) == std::future_status::ready;
  });
  const bool first_granted = first.wait_for(0s) == std::future_status::ready;
  Result<Hold> granted = (first_granted ? first : second).get();
  REQUIRE(granted.ok());
  CHECK(granted->unlock().ok());
  CHECK((first_granted ? second : first).get().ok());
}

TEST_CASE("redis: of many waiters for one lock in a program, only one tries at each release") {
  RedisServer server;
  Locks client(server.place());
  constexpr int kWaiting = 20;
  Result<Hold> holder = client.lock("k", unrenewed());
  std::vector<std::future<Result<Hold>>> waiting;
  const int64_t at_first = server.scripts();
  for (int i = 0; i < kWaiting; ++i) waiting.push_back(client.lock_future("k", unrenewed()));
  until("each waiter has tried once", [&] { return server.scripts() - at_first >= 2 * kWaiting; });
  for (int i = 0; i < kWaiting; ++i) {
    const int64_t before = server.scripts();
    CHECK(holder->unlock().ok());
    std::future<Result<Hold>>* ready = nullptr;
    until("the next waiter has the lock", [&] {
      for (auto& one : waiting) {
        if (one.valid() && one.wait_for(0s) == std::future_status::ready) ready = &one;
      }
      return ready != nullptr;
    });
    holder = ready->get();
    REQUIRE(holder.ok());
    // One more than above: the new first waiter reads the TTL to know when to try.
    CHECK(server.scripts() - before <= 5);
  }
}

TEST_CASE(
    "redis: waiters continue after the first waiter times out, and after an expiry without a message") {
  RedisServer server;
  Locks client(server.place());
  server.ask("LOCK k alice 600000");
  std::future<Result<Hold>> first = client.lock_for_future("k", 300ms, unrenewed());
  server.await_waiting(1);
  std::future<Result<Hold>> second = client.lock_future("k", unrenewed());
  std::future<Result<Hold>> readers = client.lock_future("k", of_mode(Mode::kSharedLock));
  CHECK(first.get().outcome == Verdict::kTimeout);
  CHECK(server.ask("RENEW k alice 200").integer == 1);  // no message follows when it expires
  const bool writer_first = second.wait_for(20s) == std::future_status::ready;
  REQUIRE(writer_first == (readers.wait_for(0s) != std::future_status::ready));
  std::future<Result<Hold>>& then = writer_first ? readers : second;
  Result<Hold> got = (writer_first ? second : readers).get();
  REQUIRE(got.ok());
  CHECK(got->unlock().ok());
  CHECK(then.get().ok());
}

TEST_CASE("redis: a request that waits for replicas delays no renewal") {
  RedisServer server;
  Address address = RedisServer::address_of(server.process());
  address.acks = 1;
  address.ack_timeout = DurationMs{3000};
  server.ask("LOCK other me 60000");
  Rig rig(address);
  Inbox<Value> answers;
  rig.run([&] {
    const auto put = [&](const Value& value) { answers.put(value); };
    rig.link().ask({"LOCK", "k", "me", "60000"}, DurationMs{10000}, put);
    rig.link().ask({"UNLOCK", "k", "me"}, DurationMs{10000}, put);
    rig.link().ask({"RENEW", "other", "me"}, DurationMs{10000}, put);
  });
  CHECK(answers.take().integer == 1);  // the renewal
  CHECK(server.ask("UNLOCK other me").integer == 1);
  const Value unlocked = answers.take();
  CHECK(unlocked.integer == 1);  // it ran after its LOCK, whose reply still waits for replicas
  CHECK(error_of(answers.take()).find("only 0 of 1") != std::string::npos);
}

TEST_CASE("redis: after a crash of the holder, the next waiter is granted at the TTL, without polling") {
  RedisServer server;
  Locks client(server.place());
  REQUIRE(server.ask("LOCK k alice 2000").elements.size() == 2);
  const auto began = Clock::now();
  const int64_t before = server.scripts();
  const Result<Hold> acquired = client.lock_for("k", 60s, unrenewed());
  REQUIRE(acquired.ok());
  CHECK(Clock::now() - began > 1s);
  CHECK(server.scripts() - before <= 6);
}

TEST_CASE("redis: a wait that times out is reported, and ends its subscription") {
  RedisServer server;
  Locks client(server.place());
  const Result<Hold> first = client.lock("k", unrenewed());
  CHECK(client.lock_for("k", 200ms).outcome == Verdict::kTimeout);
  server.await_waiting(0);
}

TEST_CASE("redis: waiters are notified if a renewal shortens the hold") {
  RedisServer server;
  Locks client(server.place());
  server.ask("LOCK k alice 600000");
  std::future<Result<Hold>> next = client.lock_future("k", unrenewed());
  server.await_waiting(1);
  CHECK(server.ask("RENEW k alice 100").integer == 1);
  CHECK(next.wait_for(kPatience) == std::future_status::ready);
}

TEST_CASE("redis: the end of a wait releases its grant, unless a LOCK has taken it over") {
  for (const bool taken : {false, true}) {
    CAPTURE(taken);
    RedisServer server;
    Rig& rig = server.rig();
    Inbox<Reply> inbox;
    server.ask("LOCK k alice 60000");
    const Link::Wait wait = rig.wait({"LOCK", "k", "bob", "60000", "WAIT", "0", "SESSION"}, inbox);
    server.await_waiting(1);
    CHECK(server.ask("UNLOCK k alice").integer == 1);
    CHECK(inbox.take().kind == Kind::kGrant);
    if (taken) CHECK(rig.send({"LOCK", "k", "bob", "50000"}).kind == Kind::kGrant);
    rig.run([&] { rig.link().end(wait); });
    CHECK(server.ask("EXISTS k").integer == (taken ? 1 : 0));  // because requests run in order
  }
}

TEST_CASE("redis: a link that is destroyed with a grant releases the grant first") {
  RedisServer server;
  Inbox<Reply> inbox;
  server.ask("LOCK k alice 60000");
  {
    Rig other(RedisServer::address_of(server.process()));
    other.wait({"LOCK", "k", "bob", "60000", "WAIT", "0", "SESSION"}, inbox);
    server.await_waiting(1);
    server.ask("UNLOCK k alice");
    CHECK(inbox.take().kind == Kind::kGrant);
  }
  CHECK(server.ask("EXISTS k").integer == 0);
}

TEST_CASE("redis: scripts that the server has flushed are sent again, without an error") {
  RedisServer server;
  Locks client(server.place());
  Result<Hold> acquired = client.lock("k");
  server.ask("SCRIPT FLUSH");
  CHECK(acquired->extend(40s).ok());
  server.ask("SCRIPT FLUSH");
  CHECK(acquired->unlock().ok());
  CHECK(server.is_free("k"));
}

TEST_CASE("redis: a server that is down is unreachable, and a waiter continues after its restart") {
  RedisServer server;
  Locks client(server.place());
  const Result<Hold> lost = client.lock("k", unrenewed());
  std::future<Result<Hold>> waiting = client.lock_future("k");
  server.await_waiting(1);
  const int port = server.process().port();
  server.process().end();
  CHECK(client.try_lock("other").outcome == Verdict::kUnreachable);
  const RedisProcess again({}, port);  // it has no data
  const Result<Hold> acquired = waiting.get();
  REQUIRE(acquired.ok());
  CHECK(acquired->token() > lost->token());
}

TEST_CASE("redis: the watchdog keeps a lock far beyond its TTL, and reports a deleted lock") {
  RedisServer server;
  Locks client(server.place());
  Counter lost;
  LockOptions options = with_ttl(500ms);
  options.on_lost = [&](const Status&) { lost.add(); };
  const Result<Hold> acquired = client.lock("k", options);
  until("ten renewals", [&] { return server.scripts() >= 12; });
  CHECK(acquired->is_locked());
  CHECK(lost.count() == 0);
  server.ask("DEL k");  // DEL sends no message
  lost.await(1);
  CHECK_FALSE(acquired->is_locked());
}

TEST_CASE("redis: tokens grow, even after the server has lost all data") {
  RedisServer server;
  Locks client(server.place());
  uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    Result<Hold> acquired = client.lock("k");
    CHECK(acquired->token() > last);
    last = acquired->token();
    CHECK(acquired->unlock().ok());
    if (i == 2) server.ask("FLUSHALL");
  }
}

TEST_CASE("redis: the existing Redlock libraries and this one exclude each other") {
  RedisServer server;
  Locks client(server.place());
  CHECK(server.ask("SET k theirs NX PX 60000").text == "OK");
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  server.ask("DEL k");
  const Result<Hold> acquired = client.lock("k");
  REQUIRE(acquired.ok());
  CHECK(server.ask("SET k theirs NX PX 60000").kind == Value::Kind::kNull);
}

TEST_CASE("redis: leases are granted whole or not at all, renewed, confirmed and cancelled") {
  RedisServer server;
  Locks client(server.place());
  Leases leases(client);
  Lease lease = leases.lease({{"a", "1"}, {"b", "2"}}, 60s).value();
  CHECK(server.ask("GET a").text == "1");
  CHECK(leases.lease({{"b", "x"}, {"c", "y"}}).outcome == Verdict::kBusy);
  CHECK(server.is_free("c"));
  CHECK(lease.renew(200s).ok());
  CHECK(server.ask("PTTL b").integer > 100000);
  CHECK(lease.confirm()->size() == 2);
  CHECK(server.ask("PTTL a").integer == -1);
  Lease other = leases.lease({{"c", "3"}}).value();
  CHECK(other.cancel().ok());
  CHECK(server.is_free("c"));
  { const Lease dropped = leases.lease({{"d", "4"}}).value(); }
  until("the lease is cancelled", [&] { return server.is_free("d"); });
  Lease stolen = leases.lease({{"e", "5"}, {"f", "6"}}).value();
  server.ask("DEL e");
  CHECK(stolen.confirm().outcome == holdfast::Outcome::kExpired);
  CHECK(server.is_free("f"));
}

TEST_CASE("redis: a lease with an unknown id is rejected") {
  RedisServer server;
  CHECK(error_of(server.ask("LEASE CONFIRM other")).starts_with("NOLEASE"));
  CHECK(error_of(server.ask("LEASE GRANT id 1000 k")).starts_with("ERR wrong number"));
}

TEST_CASE("redis: LOCKS REVOKE notifies the holder, and its hold continues") {
  RedisServer server;
  Locks client(server.place());
  Counter asked;
  LockOptions options = unrenewed();
  options.on_revoke_requested = [&] { asked.add(); };
  const Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  server.await_waiting(1);
  CHECK(server.ask("LOCKS REVOKE other").integer == 0);
  CHECK(server.ask("LOCKS REVOKE k").integer == 1);
  asked.await(1);
  CHECK(acquired->is_locked());
  CHECK(asked.count() == 1);
}

TEST_CASE("redis: LOCKS LIST rejects the same requests as Holdfast, with the same errors") {
  RedisServer server;
  SocketServer holdfast;
  for (const char* line :
       {"LOCKS LIST", "LOCKS LIST x", "LOCKS LIST 0 COUNT", "LOCKS LIST 0 COUNT 0", "LOCKS LIST 0 COUNT x",
        "LOCKS LIST 0 MATCH", "LOCKS LIST 0 TYPE string", "LOCKS LIST 0 COUNT 99999999999999999999"}) {
    CAPTURE(line);
    CHECK_FALSE(error_of(server.ask(line)).empty());
    CHECK(error_of(server.ask(line)) == error_of(holdfast.ask(line)));
  }
}

TEST_CASE("redis: unsupported commands get an error") {
  RedisServer server;
  for (const char* line : {"LOCKS OWNED alice", "LOCKS CHECK k 1", "LEASE INFO l"}) {
    CAPTURE(line);
    CHECK(error_of(server.ask(line)).find("is not possible on Redis: ") != std::string::npos);
  }
  CHECK(
      error_of(server.ask("LOCK k alice 1000 DELAY 5")).starts_with("ERR DELAY is not possible on Redis"));
  CHECK(error_of(server.ask("LOCK")).starts_with("ERR wrong number"));
}

TEST_CASE("redis: a grant that too few replicas acknowledge is released, and the reason is reported") {
  RedisServer server;
  const std::string place = server.place() + "?acks=1&ack-timeout=300";
  Locks alone(place);
  const Result<Hold> refused = alone.try_lock("k");
  CHECK(refused.outcome == Verdict::kRefused);
  CHECK(refused.message.find("only 0 of 1 replicas acknowledged") != std::string::npos);
  CHECK(server.is_free("k"));
  Leases leases(alone);
  CHECK(leases.lease({{"k", "1"}}).outcome == Verdict::kRefused);
  CHECK(server.is_free("k"));
  const RedisProcess replica({"--replicaof", "127.0.0.1", std::to_string(server.process().port()),
                              "--repl-diskless-sync-delay", "0"});
  until("the replica is in sync",
        [&] { return replica.info("replication", "master_link_status") == "up"; });
  Locks client(server.place() + "?acks=1&timeout=20000");
  Result<Hold> acquired = client.try_lock("k");
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(replica.ask("GET k").text == acquired->owner());
  std::future<Result<Hold>> next = client.lock_future("k");
  server.await_waiting(1);
  CHECK(acquired->unlock().ok());
  const Result<Hold> waited = next.get();
  REQUIRE(waited.ok());
  CHECK(replica.ask("GET k").text == waited->owner());
}

TEST_CASE("redis: a password works for requests and for waiting; a wrong password is reported") {
  RedisProcess redis({"--requirepass", "a@b"});
  const std::string address = redis.address();
  Locks client("redis://:a%40b@" + address);
  Result<Hold> acquired = client.lock("k");
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  std::future<Result<Hold>> next = client.lock_future("k");
  let_time_pass();
  CHECK(acquired->unlock().ok());
  CHECK(next.get().ok());
  CHECK(Locks("redis://default:a%40b@" + address).try_lock("other").ok());
  for (const char* login : {":wrong@", "nobody:a%40b@", ""}) {
    CAPTURE(login);
    const auto result = Locks("redis://" + std::string(login) + address).lock("third");
    CHECK(result.outcome == Verdict::kRefused);
    const bool told = result.message.starts_with("WRONGPASS") || result.message.starts_with("NOAUTH");
    CHECK_MESSAGE(told, result.message);
  }
}

TEST_CASE(
    "redis: a quorum of two Holdfasts and a Redis has one token, and works without one of the servers") {
  RedisServer redis;
  SocketServer one;
  auto two = std::make_unique<SocketServer>();
  const auto address = [](const std::string& place) { return place.substr(place.find("//") + 2); };
  const std::string place = "quorum://" + address(one.place()) + "," + address(two->place()) + "," +
                            redis.place() + "?timeout=2000";
  Locks client(place);
  Result<Hold> first = client.lock("k", unrenewed());
  REQUIRE(first.ok());
  uint64_t last = first->token();
  until("Redis has granted it, too", [&] { return !redis.is_free("k"); });
  CHECK(redis.ask("LOCK k other 1000").kind == Value::Kind::kNull);
  std::future<Result<Hold>> next = client.lock_future("k", unrenewed());
  until("the client waits at one of the servers", [&] {
    return one.lock_info("lock_waiters") + two->lock_info("lock_waiters") + redis.listeners("k") > 0;
  });
  CHECK(first->unlock().ok());
  Result<Hold> second = next.get();
  REQUIRE(second.ok());
  CHECK(second->token() > last);
  last = second->token();
  CHECK(second->unlock().ok());
  two.reset();
  last = 0;  // the next key has no waiter whose queue would determine the order of servers
  // Redis makes tokens by its own clock, mostly ahead of the tokens of Holdfast: the library fences them.
  for (int i = 0; i < 3; ++i) {
    Result<Hold> acquired = client.lock("fresh", unrenewed());
    REQUIRE_MESSAGE(acquired.ok(), acquired.message);
    CHECK(acquired->token() > last);
    last = acquired->token();
    for (LockServer* server : {static_cast<LockServer*>(&one), static_cast<LockServer*>(&redis)})
      CHECK(token_in(server->ask("LOCKS INFO fresh")) == last);
    CHECK(acquired->unlock().ok());
  }
  // The server with the smaller token was fenced: either may be that server.
  const std::string digest = client::evalsha_of({"fence", {}, {}})[1];
  CHECK((one.ask("INFO commandstats").text.find("cmdstat_fence:") != std::string::npos ||
         redis.ask("SCRIPT EXISTS " + digest).elements.at(0).integer == 1));
}

TEST_CASE("redis: a hold on a cluster follows its slot, through a requested failover and a crash") {
  RedisCluster cluster;
  Locks client(cluster.place() + "?timeout=2000");
  Counter lost;
  LockOptions options = with_ttl(60s);
  options.on_lost = [&](const Status&) { lost.add(); };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  const uint64_t token = acquired->token();
  RedisProcess& master = cluster.master_of("k");
  RedisProcess* replica = cluster.replica_of(master);
  REQUIRE(replica != nullptr);
  until("the lock is replicated", [&] {
    return master.ask("WAIT 1 0").integer >= 0 &&
           replica->info("replication", "master_link_status") == "up";
  });
  cluster.fail_over("k", *replica);
  CHECK(acquired->extend(60s).ok());  // MOVED
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  std::future<Result<Hold>> waiting = client.lock_future("k");
  until("the old master is a replica",
        [&] { return master.info("replication", "master_link_status") == "up"; });
  CHECK(acquired->unlock().ok());
  Result<Hold> second = waiting.get();
  REQUIRE(second.ok());
  CHECK(second->token() > token);
  until("the replica has the lock", [&] {
    return replica->info("replication", "connected_slaves") == "1" && second->extend(60s).ok();
  });
  let_time_pass();  // so that replication, which follows the reply, is done
  replica->end();
  cluster.await_master("k", master);
  until("the hold is renewed on the new master", [&] { return second->extend(60s).ok(); });
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  CHECK(second->unlock().ok());
  CHECK(client.lock("k")->token() > second->token());
  CHECK(lost.count() == 0);
}

TEST_CASE("redis: a slot of a cluster moves to another node while a lock in it is held") {
  RedisCluster cluster;
  Locks client(cluster.place() + "?timeout=20000");
  RedisProcess& from = cluster.master_of("k");
  RedisProcess& to = cluster.master_of(cluster.master_of("other").port() == from.port() ? "a" : "other");
  REQUIRE(&from != &to);
  Result<Hold> acquired = client.lock("k", unrenewed());
  REQUIRE(acquired.ok());
  const std::string set = "CLUSTER SETSLOT " + std::to_string(hash_slot("k"));
  const std::string from_id = from.ask("CLUSTER MYID").text;
  const std::string to_id = to.ask("CLUSTER MYID").text;
  CHECK(to.ask(set + " IMPORTING " + from_id).text == "OK");
  CHECK(from.ask(set + " MIGRATING " + to_id).text == "OK");
  CHECK(acquired->extend(60s).ok());
  for (const std::string& key : {std::string("k"), token_key("k")}) {
    const std::string port = std::to_string(to.port());
    CHECK(from.ask("MIGRATE 127.0.0.1 " + port + " " + key + " 0 5000").text == "OK");
  }
  CHECK(acquired->extend(60s).ok());  // ASK
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  // A new lock needs keys that do not exist yet. Redis accepts them only after the move.
  std::future<Result<Hold>> fresh = client.try_lock_future("{k}new", unrenewed());
  // The client retries, but not longer than its timeout.
  const auto began = Clock::now();
  const auto late = Locks(cluster.place() + "?timeout=300").try_lock("{k}late");
  CHECK(late.outcome == Verdict::kUnreachable);
  CHECK(Clock::now() - began < 5s);
  // A node's refusal can arrive in the last millisecond of the timeout, too.
  for (int timeout_ms = 21; timeout_ms < 61; timeout_ms += 2) {
    const std::string query = "?timeout=" + std::to_string(timeout_ms);
    const auto refused = Locks(cluster.place() + query).try_lock("{k}late");
    CHECK_MESSAGE(refused.outcome == Verdict::kUnreachable, query, ": ", refused.message);
  }
  let_time_pass();
  for (RedisProcess* node : {&to, &from}) CHECK(node->ask(set + " NODE " + to_id).text == "OK");
  const auto result = fresh.get();
  CHECK_MESSAGE(result.ok(), result.message);
  CHECK(acquired->unlock().ok());  // MOVED
}

TEST_CASE("redis: a waiter whose cluster node crashes is notified of the release by another node") {
  RedisCluster cluster;
  Locks client(cluster.place() + "?timeout=2000");
  Result<Hold> acquired = client.lock("k", with_ttl(60s));
  std::future<Result<Hold>> waiting = client.lock_future("k");
  const auto listener = [&]() -> RedisProcess* {
    for (const auto& node : cluster.nodes()) {
      if (node->runs() && node->ask("PUBSUB NUMSUB __lock__:k").elements.at(1).integer == 1)
        return node.get();
    }
    return nullptr;
  };
  until("a client is subscribed", [&] { return listener() != nullptr; });
  let_time_pass();  // the lock reaches the replica: the node may be the master of the lock
  listener()->end();
  until("the client is subscribed on another node", [&] { return listener() != nullptr; });
  until("the hold is renewed", [&] { return acquired->extend(60s).ok(); });
  CHECK(acquired->unlock().ok());
  CHECK(waiting.get().ok());
}

TEST_CASE("redis: keys of a cluster are found on any node; a link to a single node gets advice") {
  RedisCluster cluster;
  Locks client(cluster.place());
  std::vector<Result<Hold>> held;
  for (int i = 0; i < 30; ++i) {
    held.push_back(client.try_lock("key:" + std::to_string(i)));
    REQUIRE_MESSAGE(held.back().ok(), held.back().message);
  }
  size_t masters = 0;
  for (const auto& node : cluster.nodes()) {
    if (node->info("replication", "role") == "master" && node->ask("DBSIZE").integer > 0) ++masters;
  }
  CHECK(masters == 3);
  Leases leases(client);
  Lease lease = leases.lease({{"{x}a", "1"}, {"{x}b", "2"}}).value();
  CHECK(lease.confirm().ok());
  CHECK(leases.lease({{"a", "1"}, {"b", "2"}}).outcome == Verdict::kRefused);  // in different slots
  int away = 0;
  Locks one("redis://" + cluster.nodes()[0]->address());
  for (int i = 0; i < 30; ++i) {
    const auto result = one.try_lock("free:" + std::to_string(i));
    if (!result.ok() && result.message.find("redis-cluster://") != std::string::npos) ++away;
  }
  CHECK(away > 5);
}

}  // namespace holdfast::integration
