// Waits by ticket where a transcript cannot go: a server that may grant nothing, a restart, clients with
// many requests, counters, and random requests.
#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"
#include "core/state/tickets.h"
#include "unit/session.h"

namespace holdfast {
namespace {

using Request = std::vector<std::string>;

Request by_ticket(const std::string& key, const std::string& owner, const std::string& time) {
  return {"LOCK", key, owner, "1000", "TICKET", time};
}

bool has_vote(const std::string& reply) { return reply.starts_with("*6\r\n$4\r\nvote\r\n"); }
bool is_queued(const std::string& reply) { return reply.starts_with("*6\r\n$6\r\nqueued\r\n"); }

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
size_t votes_in(const std::string& pushes) { return count(pushes, "$4\r\nvote\r\n"); }

std::string fact(TestClient& client, const std::string& name) {
  const std::string all = client.ask({"INFO", "everything"});
  const size_t at = all.find("\n" + name + ":");
  REQUIRE(at != std::string::npos);
  return all.substr(at, all.find("\r\n", at) - at).substr(name.size() + 2);
}

}  // namespace

TEST_CASE("tickets: keys whose requests end while the server grants nothing leave nothing behind") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  engine.availability().recovering_until = session_time(100).mono;
  CHECK(is_queued(a.ask(by_ticket("stays", "s.1", "10"))));
  for (int n = 0; n < 100; ++n) {
    const std::string key = "k" + std::to_string(n);
    CHECK(is_queued(a.ask(by_ticket(key, "a.1", "10"))));
    a.must({"UNLOCK", key, "a.1"});
    engine.check_invariants();
  }
  CHECK(fact(a, "lock_queues") == "1");
  Effects fx;
  engine.tick(session_time(100), fx);
  CHECK(votes_in(a.received()) == 1);
}

TEST_CASE("tickets: while the server recovers, the search for a deadlock knows that holders have left") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  a.must({"LOCK", "free", "bob", "1000", "SHARED"});
  a.must({"LOCK", "other", "a.1", "1000", "SHARED"});
  CHECK(is_queued(a.ask(by_ticket("free", "b.1", "10"))));
  a.must({"LOCK", "mine", "a.1", "1000"});
  a.must({"LOCK", "held", "c.1", "1000"});
  CHECK(is_queued(a.ask(by_ticket("mine", "c.1", "10"))));
  engine.availability().recovering_until = session_time(100).mono;
  a.must({"UNLOCK", "free", "bob"});
  CHECK(is_queued(a.ask(by_ticket("mine", "d.1", "20"))));
  a.must({"UNLOCK", "mine", "a.1"});
  CHECK(is_queued(a.ask(by_ticket("held", "a.1", "10"))));
  engine.check_invariants();
}

TEST_CASE("tickets: while the server recovers, requests only wait, and get votes when that is over") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  engine.availability().recovering_until = session_time(100).mono;
  CHECK(is_queued(a.ask(by_ticket("k", "b.1", "20"))));
  CHECK(is_queued(a.ask(by_ticket("k", "a.1", "10"))));
  CHECK(a.ask({"LOCK", "k", "x.1", "1000", "NOTE", "TICKET"}).starts_with("-RECOVERING"));
  CHECK(a.ask({"LOCK", "k", "bob", "1000", "WAIT", "0"}).starts_with("-RECOVERING"));
  engine.check_invariants();
  CHECK(engine.next_deadline() == session_time(100).mono);
  Effects fx;
  engine.tick(session_time(99), fx);
  CHECK(a.received().empty());
  engine.tick(session_time(100), fx);
  const std::string pushes = a.received();
  CHECK(votes_in(pushes) == 1);
  CHECK(pushes.find("a.1") != std::string::npos);
  engine.check_invariants();
}

TEST_CASE("tickets: while the disk cannot be written, a vote can be given back, and the next one waits") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  CHECK(has_vote(a.ask(by_ticket("k", "a.1", "10"))));
  CHECK(is_queued(a.ask(by_ticket("k", "b.1", "20"))));
  engine.availability().refusal = "MISCONF persistence failed";
  CHECK(a.ask(by_ticket("k", "c.1", "30")).starts_with("-MISCONF"));
  CHECK(a.ask({"RENEW", "k", "a.1", "1000", "TOKEN", "1"}).starts_with("-MISCONF"));
  CHECK(a.ask({"LOCKS", "YIELD", "k", "a.1", "1"}) == ":1\r\n");
  CHECK(a.ask({"UNLOCK", "k", "a.1"}) == ":0\r\n");
  engine.availability().refusal.clear();
  Effects fx;
  engine.tick(session_time(1), fx);
  CHECK(votes_in(a.received()) == 1);
  CHECK(a.ask({"GET", "k"}) == "$3\r\nb.1\r\n");
}

TEST_CASE("tickets: after a restart a vote is a short hold, which its owner takes over as its vote") {
  Engine first(session_config());
  first.keep_journal();
  TestClient before(first);
  before.must({"HELLO", "3"});
  CHECK(has_vote(before.ask(by_ticket("k", "a.1", "20"))));
  CHECK(has_vote(before.ask(by_ticket("free", "a.1", "20"))));
  Engine engine(session_config());
  REQUIRE(engine.replay(first.journal_records(), session_time(50)).empty());
  engine.finish_loading(session_time(50));
  TestClient a(engine, session_time(100));
  TestClient b(engine, session_time(100));
  a.must({"HELLO", "3"});
  b.must({"HELLO", "3"});
  CHECK(is_queued(b.ask(by_ticket("k", "b.1", "10"))));
  CHECK(a.received().empty());  // nobody is asked for it
  CHECK(a.ask(by_ticket("k", "a.1", "20")).starts_with("*6\r\n$4\r\nvote\r\n:1\r\n:5000\r\n:5100\r\n"));
  CHECK(a.ask({"LOCKS", "YIELD", "k", "a.1", "1"}).starts_with(":1\r\n"));
  CHECK(votes_in(b.received()) == 1);
  engine.check_invariants();
  // The other one expires in its time.
  b.at(session_time(999));
  CHECK(b.ask({"GET", "free"}) == "$3\r\na.1\r\n");
  b.at(session_time(1000));
  CHECK(b.ask({"GET", "free"}) == "_\r\n");
}

TEST_CASE("tickets: an inquiry follows when the owner has taken its vote over") {
  Engine first(session_config());
  first.keep_journal();
  TestClient before(first);
  before.must({"HELLO", "3"});
  CHECK(has_vote(before.ask(by_ticket("k", "a.1", "20"))));
  Engine engine(session_config());
  REQUIRE(engine.replay(first.journal_records(), session_time(50)).empty());
  engine.finish_loading(session_time(50));
  TestClient a(engine, session_time(100));
  a.must({"HELLO", "3"});
  CHECK(is_queued(a.ask(by_ticket("k", "b.1", "10"))));
  const std::string reply = a.ask(by_ticket("k", "a.1", "20"));
  CHECK(has_vote(reply));
  CHECK(count(reply, "inquire") == 1);
  // A hold that is set since the start is no vote without a request.
  CHECK(a.ask({"RENEW", "k", "a.1", "5000", "TOKEN", "1"}) == ":1\r\n");
  CHECK(a.ask(by_ticket("k", "a.1", "20")).starts_with("*6\r\n$4\r\nheld\r\n"));
}

TEST_CASE("tickets: a disconnecting client with many requests leaves them in steps, and stops no other") {
  Engine engine(session_config());
  TestClient holder(engine);
  holder.must({"LOCK", "k", "holder", "0"});
  TestClient many(engine);
  many.must({"HELLO", "3"});
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) many.must(by_ticket("k", "m" + std::to_string(i) + ".1", "10"));
  TestClient behind(engine);
  behind.must({"HELLO", "3"});
  CHECK(is_queued(behind.ask(by_ticket("k", "b.1", "20"))));
  many.disconnect();
  holder.must({"UNLOCK", "k", "holder"});
  Effects fx;
  for (int i = 0; engine.next_deadline() == TimeMs{0}; ++i) {
    REQUIRE(i < 50);
    engine.tick(session_time(0), fx);
    engine.check_invariants();
  }
  engine.tick(session_time(5), fx);
  CHECK(votes_in(behind.received()) == 1);
  holder.at(session_time(799));
  CHECK(fact(holder, "lock_waiters") == std::to_string(kMany + 1));
  holder.at(session_time(800));
  CHECK(fact(holder, "lock_waiters") == "1");
  engine.check_invariants();
}

TEST_CASE("tickets: the many requests of a client that was silent are returned in steps") {
  Engine engine(session_config());
  TestClient holder(engine);
  TestClient many(engine);
  many.must({"HELLO", "3"});
  constexpr int kMany = 250;
  for (int i = 0; i < kMany; ++i) {
    holder.must({"LOCK", std::to_string(i), "holder", "0", "SESSION"});
    CHECK(is_queued(many.ask(by_ticket(std::to_string(i), "m.1", "10"))));
  }
  Effects fx;
  engine.tick(session_time(801), fx);
  holder.at(session_time(801));
  for (int i = 0; i < kMany; ++i) holder.must({"UNLOCK", std::to_string(i), "holder"});
  CHECK(many.received().empty());
  many.at(session_time(900));
  CHECK(votes_in(many.ask({"LOCKS", "HEARTBEAT", "5890"})) == 100);
  engine.check_invariants();
  engine.tick(session_time(901), fx);
  CHECK(votes_in(many.received()) == 100);
  engine.tick(session_time(902), fx);
  CHECK(votes_in(many.received()) == 50);
  engine.tick(session_time(903), fx);
  CHECK(many.received().empty());
  many.disconnect();
  engine.check_invariants();
}

TEST_CASE("tickets: silent requests at the head of a long queue are set aside in steps") {
  Engine engine(session_config());
  TestClient holder(engine);
  holder.must({"LOCK", "k", "holder", "0"});
  TestClient many(engine);
  many.must({"HELLO", "3"});
  for (int i = 0; i < 900; ++i) many.must(by_ticket("k", "m" + std::to_string(i) + ".1", "10"));
  TestClient behind(engine, session_time(801));
  behind.must({"HELLO", "3"});
  CHECK(is_queued(behind.ask(by_ticket("k", "b.1", "20"))));
  holder.at(session_time(801));
  holder.must({"UNLOCK", "k", "holder"});
  Effects fx;
  CHECK(engine.next_deadline() == session_time(802).mono);
  engine.tick(session_time(802), fx);
  CHECK(behind.received().empty());
  engine.tick(session_time(803), fx);
  CHECK(votes_in(behind.received()) == 1);
  engine.check_invariants();
}

TEST_CASE("tickets: counters tell waits that were queued, and votes as grants") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  CHECK(has_vote(a.ask(by_ticket("k", "a.1", "10"))));
  CHECK(fact(a, "lock_waiters") == "1");
  CHECK(is_queued(a.ask(by_ticket("k", "b.1", "20"))));
  CHECK(fact(a, "lock_waiters") == "2");
  CHECK(a.ask({"RENEW", "k", "a.1", "1000", "TOKEN", "1"}) == ":1\r\n");
  CHECK(fact(a, "lock_waiters") == "1");
  CHECK(fact(a, "lock_queued_grants") == "0");
  const std::string none = a.ask({"LOCKS", "TOP", "BY", "wait"});
  CHECK(none.starts_with("*0"));  // it has not waited
  a.must({"UNLOCK", "k", "a.1"});
  CHECK(fact(a, "lock_queued_grants") == "1");
  a.must({"RENEW", "k", "b.1", "1000", "TOKEN", "2"});
  CHECK(fact(a, "lock_waiters") == "0");
  CHECK(a.ask({"LOCKS", "TOP", "BY", "wait"}).starts_with("*1"));
}

TEST_CASE("tickets: used memory counts requests and attempts that are over") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"HELLO", "3"});
  const uint64_t before = used_memory_bytes(engine.state());
  for (int i = 0; i < 100; ++i) a.must({"UNLOCK", "k", "a" + std::to_string(i) + ".1"});
  const uint64_t over = used_memory_bytes(engine.state()) - before;
  CHECK(over >= 100 * 100);
  CHECK(engine.state().tickets.relay.size() == 100);
  for (int i = 0; i < 100; ++i) a.must(by_ticket("k", "a" + std::to_string(i) + ".2", "10"));
  CHECK(used_memory_bytes(engine.state()) - before - over >= 100 * sizeof(Ticket));
}

namespace {

// Clients that send requests by ticket and others for few keys, close and open connections, and let time
// pass.
class RandomTickets {
 public:
  explicit RandomTickets(uint64_t seed) : dice_(seed), engine_(session_config()) {
    for (auto& client : clients_) replace(client);
  }

  void step() {
    if (dice_.one_in(15)) change_availability();
    if (dice_.one_in(4)) return pass();
    if (dice_.one_in(4)) ms_ += dice_.between(0, 100);  // requests come before the loop sees that
    auto& client = clients_[dice_.below(clients_.size())];
    client->at(now());
    if (client->blocked() || dice_.one_in(20)) {
      client->disconnect();
      replace(client);
    } else {
      client->ask(request());
    }
    engine_.check_invariants();
  }

 private:
  Now now() const { return session_time(ms_); }

  void replace(std::unique_ptr<TestClient>& client) {
    client = std::make_unique<TestClient>(engine_, now());
    if (!dice_.one_in(10)) client->ask({"HELLO", "3"});
  }

  // For a while the server may grant nothing.
  void change_availability() {
    Availability& availability = engine_.availability();
    availability.refusal = dice_.one_in(3) ? "MISCONF no disk" : "";
    if (dice_.one_in(3)) availability.recovering_until = now().mono + DurationMs{dice_.between(0, 300)};
  }

  // The loop must not sleep past due work.
  void pass() {
    ms_ += dice_.one_in(3) ? dice_.between(0, 3) : dice_.between(0, 300);
    for (int turns = 0; turns < 10000; ++turns) {
      const auto next = engine_.next_deadline();
      Effects fx;
      engine_.tick(now(), fx);
      const bool due = next && is_due(*next, now().mono);
      REQUIRE((due || fx.empty()));
      engine_.check_invariants();
      for (const auto& client : clients_) client->received();
      if (!due) return;
    }
    FAIL("the loop would spin");
  }

  std::string number(uint64_t below) { return std::to_string(dice_.below(below)); }
  std::string key() { return "k" + number(2); }
  std::string owner() { return "s" + number(4) + "." + number(4); }
  std::string token() { return number(60); }

  Request lock() {
    Request r = {"LOCK", key(), owner(), std::to_string(dice_.between(1, 600)), "TICKET", number(30)};
    const uint64_t mode = dice_.below(4);
    if (mode == 0) r.emplace_back("SHARED");
    if (mode == 1) r.insert(r.end(), {"LIMIT", "2"});
    if (dice_.one_in(4)) r.insert(r.end(), {"HAS", token()});
    if (dice_.one_in(2))
      r.insert(r.end(), {"SEEN", std::to_string(now().mono.count - dice_.between(0, 900))});
    if (dice_.one_in(6)) r.insert(r.end(), {"OVER", owner(), "OVER", owner()});
    if (dice_.one_in(6)) r.emplace_back("PROVISIONAL");
    if (dice_.one_in(6)) r.insert(r.end(), {"TOKEN", token()});
    if (dice_.one_in(10)) r.insert(r.end(), {"DELAY", "50"});
    return r;
  }

  Request request() {
    switch (dice_.below(20)) {
      case 0:
        return {"DEL", key()};
      case 1:
        return {"LOCKS", "HEARTBEAT", std::to_string(now().mono.count - dice_.between(0, 900))};
      case 2:
        return {"LOCKS", "HEARTBEAT"};
      case 3:
        return {"LOCK", key(), owner(), "100", "WAIT", dice_.one_in(2) ? "50" : "0"};
      case 4:
        if (dice_.one_in(3)) return {"LOCK", key(), owner(), "100", "WAIT", "200", "ASYNC"};
        return {"LOCK", key(), owner(), "100", dice_.one_in(2) ? "SHARED" : "SESSION"};
      case 5:
        return {"UNLOCK", key(), owner()};
      case 6:
        return {"UNLOCK", key(), owner(), "WAITS"};
      case 7:
        return {"RENEW", key(), owner(), "500", "TOKEN", token()};
      case 8:
      case 9:
        return {"LOCKS", "YIELD", key(), owner(), token()};
      case 10:
        return of_key();
      default:
        return lock();
    }
  }
  Request of_key() {
    switch (dice_.below(11)) {
      case 0:
        return {"FLUSHALL"};
      case 1:
        return {"SWAPDB", "0", "1"};
      case 2:
        return {"RENAME", key(), key()};
      case 3:
        return {"SET", key(), owner(), "PX", "200"};
      case 4:
        return {"RPUSH", key(), "x"};
      case 5:
        return {"FENCE", key(), owner(), token()};
      case 6:
        return {"PERSIST", key()};
      case 7:
        return {"RENEW", key(), owner()};
      case 8:
        return {"RESET"};
      case 9:
        return {"LOCKS", "BREAK", key()};
      default:
        return {"LOCKS", "INFO", key()};
    }
  }

  simulation::Dice dice_;
  Engine engine_;
  int64_t ms_ = 0;
  std::array<std::unique_ptr<TestClient>, 5> clients_;
};

}  // namespace

TEST_CASE("tickets: random requests keep the invariants, and the loop wakes up in time") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    RandomTickets run(seed);
    for (int i = 0; i < 400; ++i) run.step();
  }
}

}  // namespace holdfast
