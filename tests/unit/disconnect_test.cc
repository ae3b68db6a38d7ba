// A client with much state is removed in steps. Other clients see at each step the state as if its
// disconnect were noticed later. The other cases limit the cost of many waits of one owner, or behind one:
// each took minutes or seconds when a step ran for each pair of waits.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/session.h"

namespace holdfast {
namespace {

// Sends HELLO, and N requests of each kind of which a client may have many.
void take_much(TestClient& client, int n) {
  client.must({"HELLO", "3"});
  for (int i = 0; i < n; ++i) {
    const std::string name = "n" + std::to_string(i);
    client.must({"WATCH", name});
    client.must({"SUBSCRIBE", name});
    client.must({"LOCK", "wanted", name, "1000", "WAIT", "0", "ASYNC"});
    client.must({"LOCK", name, "leaver", "1000", "SESSION"});
  }
}

// Ticks at this time until no work is due at once. Returns the number of ticks.
int run_out(Engine& engine, Now now) {
  int ticks = 0;
  for (Effects fx; engine.next_deadline() == TimeMs{0}; ++ticks) {
    engine.tick(now, fx);
    engine.check_invariants();
  }
  return ticks;
}

std::string info(TestClient& client, const std::string& name) {
  const std::string all = client.ask({"INFO", "everything"});
  const size_t at = all.find(name + ":");
  REQUIRE(at != std::string::npos);
  return all.substr(at, all.find("\r\n", at) - at).substr(name.size() + 1);
}

TEST_CASE("leave: a client with little state is removed at once, one with much in steps") {
  for (const auto& [much, steps] : {std::pair(25, 0), {26, 1}, {51, 2}}) {
    Engine engine(session_config());
    TestClient other(engine);
    other.must({"LOCK", "wanted", "other", "0"});
    TestClient client(engine);
    take_much(client, much);
    client.disconnect();
    CHECK((engine.next_deadline() == TimeMs{0}) == (steps > 0));
    CHECK(run_out(engine, session_time(0)) == steps);
    CHECK(info(other, "lock_waiters") == "0");
    CHECK(other.ask({"PUBSUB", "NUMSUB", "n0"}) == "*2\r\n$2\r\nn0\r\n:0\r\n");
    CHECK(info(other, "connected_clients") == "1");
  }
}

TEST_CASE("leave: a disconnecting client gets no grant and no reply, and the next waiter is served") {
  Engine engine(session_config());
  TestClient holder(engine);
  holder.must({"LOCK", "wanted", "holder", "0"});
  TestClient client(engine);
  take_much(client, 1000);
  TestClient behind(engine);
  CHECK(behind.ask({"LOCK", "wanted", "behind", "1000", "WAIT", "0"}).empty());
  client.disconnect();
  CHECK(holder.ask({"UNLOCK", "wanted", "holder"}) == ":1\r\n");
  CHECK(holder.ask({"PUBLISH", "n999", "x"}) == ":1\r\n");  // not removed yet
  Effects fx;
  for (int i = 0; engine.next_deadline() == TimeMs{0}; ++i) {
    REQUIRE(i < 50);
    engine.tick(session_time(0), fx);
  }
  CHECK(behind.received().starts_with("*2\r\n$6\r\nbehind\r\n"));
  CHECK(holder.ask({"PUBLISH", "n999", "x"}) == ":0\r\n");
}

TEST_CASE(
    "leave: the wait for an element of a disconnecting client ends by its timeout, and gets no element") {
  for (const bool times_out : {false, true}) {
    Engine engine(session_config());
    TestClient other(engine);
    other.must({"LOCK", "wanted", "other", "0"});
    TestClient client(engine);
    take_much(client, 100);
    CHECK(client.ask({"BLPOP", "l", "m", "0.01"}).empty());
    client.disconnect();
    if (times_out) other.at(session_time(10));
    CHECK(other.ask({"RPUSH", "l", "a"}) == ":1\r\n");
    CHECK(other.ask({"LLEN", "l"}) == ":1\r\n");
    run_out(engine, session_time(10));
    CHECK(info(other, "connected_clients") == "1");
    CHECK(other.ask({"LLEN", "l"}) == ":1\r\n");
  }
}

TEST_CASE("leave: many SESSION holds end after the grace, a part of them each millisecond") {
  Engine engine(session_config());
  TestClient other(engine);
  TestClient client(engine);
  for (int i = 0; i < 201; ++i) client.must({"LOCK", std::to_string(i), "me", "0", "SESSION"});
  client.disconnect();
  Effects fx;
  std::vector<std::string> left;
  for (int ms = 19; ms < 24; ++ms) {
    other.at(session_time(ms));
    left.push_back(other.ask({"DBSIZE"}));
  }
  CHECK(left == std::vector<std::string>{":201\r\n", ":101\r\n", ":1\r\n", ":0\r\n", ":0\r\n"});
  engine.check_invariants();
}

TEST_CASE("leave: a client is removed in steps, and a second disconnect finishes the first at once") {
  Engine engine(session_config());
  TestClient other(engine);
  other.must({"LOCK", "wanted", "other", "0"});
  for (int i = 0; i < 18; ++i) {
    TestClient client(engine);
    take_much(client, 51);
    client.disconnect();
    CHECK(info(other, "connected_clients") == "1");
  }
  CHECK(run_out(engine, session_time(0)) == 2);
  CHECK(info(other, "lock_waiters") == "0");
}

TEST_CASE("leave: a disconnecting client blocks no free lock and closes no cycle") {
  Engine engine(session_config());
  TestClient holder(engine);
  TestClient client(engine);
  holder.must({"LOCK", "wanted", "holder", "0"});
  holder.must({"LOCK", "other", "holder", "0"});
  client.must({"LOCK", "mine", "leaver", "0"});
  take_much(client, 300);
  client.must({"LOCK", "other", "leaver", "0", "WAIT", "0", "ASYNC"});
  client.disconnect();
  CHECK(holder.ask({"UNLOCK", "wanted", "holder"}) == ":1\r\n");
  CHECK(holder.ask({"LOCK", "wanted", "holder", "0"}).starts_with("*2\r\n"));
  CHECK(holder.ask({"LOCK", "mine", "holder", "0", "WAIT", "0"}).empty());
  CHECK(run_out(engine, session_time(0)) > 0);
}

TEST_CASE("leave: unread input and queued output are freed in steps of half a megabyte") {
  Engine engine(session_config());
  TestClient other(engine);
  other.must({"SET", "large", std::string(size_t{3} << 20U, 'x')});
  Effects fx;
  const ConnId reader = engine.open("127.0.0.1:3", "127.0.0.1:2", session_time(0));
  const std::vector<std::string_view> get = {"GET", "large"};
  engine.apply(reader, get, session_time(0), fx);
  engine.drop(reader, session_time(0), fx);
  CHECK(run_out(engine, session_time(0)) >= 6);
  TestClient client(engine);
  client.must({"MULTI"});
  client.must({"SET", "k", std::string(size_t{3} << 20U, 'x')});
  client.disconnect();
  CHECK(run_out(engine, session_time(0)) >= 6);
}

TEST_CASE("leave: the memory of a transaction is freed in steps, however it ends") {
  for (const char* end : {"EXEC", "DISCARD", "RESET"}) {
    INFO(end);
    Engine engine(session_config());
    TestClient client(engine);
    client.must({"MULTI"});
    client.must({"ECHO", std::string(size_t{3} << 20U, 'x')});
    client.must({end});
    CHECK(run_out(engine, session_time(0)) >= 6);
  }
}

TEST_CASE("queue: one owner that waits for 5,000 keys acquires them all") {
  Engine engine(session_config());
  TestClient holder(engine);
  TestClient one(engine);
  one.must({"HELLO", "3"});
  constexpr int kKeys = 5000;
  for (int i = 0; i < kKeys; ++i) {
    holder.must({"LOCK", std::to_string(i), "holder", "0", "SESSION"});
    one.must({"LOCK", std::to_string(i), "one", "0", "WAIT", "0", "ASYNC"});
  }
  holder.ask({"RESET"});
  Effects fx;
  for (int ms = 0; ms <= 20 + kKeys / 100; ++ms) engine.tick(session_time(ms), fx);
  TestClient third(engine, session_time(100));
  CHECK(info(third, "lock_waiters") == "0");
  CHECK(info(third, "lock_queued_grants") == std::to_string(kKeys));
}

TEST_CASE("queue: 3,000 upgrades of one owner are granted when the other holder releases") {
  Engine engine(session_config());
  TestClient a(engine);
  TestClient b(engine);
  a.must({"HELLO", "3"});
  a.must({"LOCK", "k", "a", "0", "SHARED"});
  b.must({"LOCK", "k", "b", "0", "SHARED"});
  for (int i = 0; i < 3000; ++i) a.must({"LOCK", "k", "a", "0", "WAIT", "0", "ASYNC"});
  CHECK(b.ask({"UNLOCK", "k", "b"}) == ":1\r\n");
  CHECK(info(b, "lock_waiters") == "0");
}

// Many owners wait for `mine`, which "me" holds. Then "me" waits for `other`. Returns its reply.
std::string wait_behind(int waiters, bool one_is_in_the_way, std::string& given_up) {
  Engine engine(session_config());
  TestClient me(engine);
  TestClient queued(engine);
  queued.must({"HELLO", "3"});
  me.must({"LOCK", "mine", "me", "0"});
  queued.must({"LOCK", "other", "last", "0"});
  for (int i = 1; i < waiters; ++i) {
    queued.must({"LOCK", "mine", std::to_string(i), "0", "WAIT", "0", "ASYNC"});
  }
  queued.must({"LOCK", "mine", one_is_in_the_way ? "last" : "0", "0", "WAIT", "0", "ASYNC"});
  std::string reply = me.ask({"LOCK", "other", "me", "0", "WAIT", "0"});
  TestClient third(engine);
  given_up = info(third, "lock_deadlock_searches_aborted");
  return reply;
}

TEST_CASE("deadlock: found among 1,500 waiters; beyond a limit the search stops") {
  std::string given_up;
  CHECK(wait_behind(1500, false, given_up).empty());
  CHECK(given_up == "0");
  CHECK(wait_behind(1500, true, given_up).starts_with("-DEADLOCK "));
  CHECK(given_up == "0");
  CHECK(wait_behind(100'000, false, given_up).empty());
  CHECK(given_up == "1");
  CHECK(wait_behind(100'000, true, given_up).empty());
  CHECK(given_up == "1");
}

TEST_CASE("deadlock: large searches share a time budget, small ones always run") {
  Engine engine(session_config());
  TestClient me(engine);
  TestClient queued(engine);
  TestClient last(engine);
  queued.must({"HELLO", "3"});
  me.must({"LOCK", "mine", "me", "0"});
  last.must({"LOCK", "other", "last", "0"});
  for (int i = 0; i < 1500; ++i) {
    queued.must({"LOCK", "mine", std::to_string(i), "0", "WAIT", "0", "ASYNC"});
  }
  CHECK(last.ask({"LOCK", "mine", "last", "0", "WAIT", "0"}).empty());
  const auto asks = [&](int ms) {
    me.at(session_time(ms));
    return me.ask({"LOCK", "other", "me", "0", "WAIT", "5"});
  };
  CHECK(asks(0).starts_with("-DEADLOCK "));
  CHECK(asks(0).empty());  // the search stops: it waits
  Effects fx;
  engine.tick(session_time(5), fx);
  CHECK(me.received() == "*-1\r\n");
  CHECK(asks(500).starts_with("-DEADLOCK "));
}

}  // namespace
}  // namespace holdfast
