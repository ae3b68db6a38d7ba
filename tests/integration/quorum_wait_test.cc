// Waits by ticket on quorums of real servers: the order of the waiters, clients that each miss another
// server, servers that stop, restart or have a leftover hold, and what a wait leaves behind.
#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "chaos_proxy.h"
#include "client.h"
#include "listener.h"
#include "locks_rig.h"

namespace holdfast::integration {
namespace {

constexpr size_t kServers = 3;

// Three servers; each keeps its port over restarts.
class Quorum {
 public:
  Quorum() {
    for (int& port : ports_) port = free_port();
    for (size_t i = 0; i < kServers; ++i) start(i);
  }
  void start(size_t i) {
    servers_[i] = std::make_unique<Server>(std::vector<std::string>{"--port", std::to_string(ports_[i])});
  }
  void kill(size_t i) {
    servers_[i]->stop(SIGKILL);
    servers_[i].reset();
  }
  void signal(size_t i, int number) { ::kill(servers_[i]->pid(), number); }
  int port(size_t i) const { return ports_[i]; }
  bool runs(size_t i) const { return servers_[i] != nullptr; }
  // The address of the quorum, where one server may have another port.
  std::string place(size_t other = kServers, int other_port = 0) const {
    std::string text = "quorum://";
    for (size_t i = 0; i < kServers; ++i)
      text += (i == 0 ? "" : ",") + ("127.0.0.1:" + std::to_string(i == other ? other_port : ports_[i]));
    return text;
  }
  std::string ask(size_t i, const std::string& line) { return Client(connect_tcp(ports_[i])).ask(line); }
  size_t waiters(size_t i) {
    const std::string info = ask(i, "INFO locks");
    const std::string name = "lock_waiters:";
    return std::stoul(info.substr(info.find(name) + name.size()));
  }
  // Waits until each server that runs has so many waiters. A hold that is not confirmed yet has one.
  void until_waiting(size_t n) {
    for (size_t i = 0; i < kServers; ++i) {
      if (runs(i)) until("the waiters", [&] { return waiters(i) == n; });
    }
  }
  // Waits until no server has a hold of the key or a waiter.
  void until_free(const std::string& key = "k") {
    for (size_t i = 0; i < kServers; ++i) {
      until("no hold is left", [&] { return ask(i, "EXISTS " + key) == "0"; });
    }
    until_waiting(0);
  }

 private:
  int ports_[kServers] = {};
  std::unique_ptr<Server> servers_[kServers];
};

// Clients that each acquire and release the lock a number of times. A counter without any protection of its
// own shows that they exclude each other.
class Crowd {
 public:
  explicit Crowd(int rounds) : rounds_(rounds) {}
  void add(const std::string& place) {
    threads_.emplace_back([this, place] {
      Locks client(place);
      for (int n = 0; n < rounds_; ++n) {
        Result<Hold> acquired = client.lock_for("k", 60s, with_ttl(1s));
        if (!acquired.ok()) {
          ++failures_;
          continue;
        }
        if (acquired->token() <= last_token_) ++failures_;
        last_token_ = acquired->token();
        const int before = count_;
        std::this_thread::yield();
        count_ = before + 1;
        if (acquired->is_locked()) static_cast<void>(acquired->unlock());
      }
    });
  }
  // Waits for the end of all, and returns the number of rounds that were counted.
  int count() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    CHECK(failures_ == 0);
    return count_;
  }
  ~Crowd() { static_cast<void>(count()); }

 private:
  const int rounds_;
  std::vector<std::thread> threads_;
  std::atomic<int> failures_ = 0;
  std::atomic<int> count_ = 0;
  std::atomic<uint64_t> last_token_ = 0;
};

}  // namespace

TEST_CASE("quorum wait: the waiters of all clients are on all servers, and are granted in their order") {
  Quorum quorum;
  Locks holder(quorum.place());
  Result<Hold> held = holder.lock("k");
  REQUIRE(held.ok());
  quorum.until_waiting(0);
  std::vector<std::unique_ptr<Locks>> clients;
  std::vector<std::future<Result<Hold>>> waits;
  for (size_t n = 1; n <= 6; ++n) {
    clients.push_back(std::make_unique<Locks>(quorum.place()));
    waits.push_back(clients.back()->lock_future("k"));
    quorum.until_waiting(n);
  }
  uint64_t token = held->token();
  CHECK(held->unlock().ok());
  for (auto& wait : waits) {
    REQUIRE(wait.wait_for(60s) == std::future_status::ready);  // else one behind it was granted
    Result<Hold> next = wait.get();
    REQUIRE_MESSAGE(next.ok(), next.message);
    CHECK(next->token() > token);
    token = next->token();
    CHECK(next->unlock().ok());
  }
  quorum.until_free();
}

TEST_CASE("quorum wait: shared waiters are granted together, and a writer waits for its turn") {
  Quorum quorum;
  Locks client(quorum.place());
  LockOptions shared;
  shared.mode = Mode::kSharedLock;
  Result<Hold> held = client.lock("k");
  REQUIRE(held.ok());
  quorum.until_waiting(0);
  auto one = client.lock_future("k", shared);
  auto two = client.lock_future("k", shared);
  quorum.until_waiting(2);
  auto writer = client.lock_future("k");
  quorum.until_waiting(3);
  CHECK(held->unlock().ok());
  Result<Hold> first = one.get();
  Result<Hold> second = two.get();
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  quorum.until_waiting(1);
  CHECK(first->unlock().ok());
  CHECK(second->unlock().ok());
  Result<Hold> last = writer.get();
  REQUIRE(last.ok());
  CHECK(last->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: a semaphore admits its limit, and the next one after a release") {
  Quorum quorum;
  Locks client(quorum.place());
  LockOptions two;
  two.mode = Mode::kCountedLock;
  two.limit = 2;
  Result<Hold> first = client.lock("k", two);
  Result<Hold> second = client.lock("k", two);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(client.try_lock("k", two).outcome == Verdict::kBusy);
  auto third = client.lock_future("k", two);
  quorum.until_waiting(1);
  CHECK(first->unlock().ok());
  Result<Hold> next = third.get();
  REQUIRE(next.ok());
  CHECK(next->unlock().ok());
  CHECK(second->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: a wait that ends without the lock leaves neither wait nor hold") {
  Quorum quorum;
  Locks holder(quorum.place());
  Result<Hold> held = holder.lock("k");
  REQUIRE(held.ok());
  quorum.until_waiting(0);
  Locks other(quorum.place());
  CHECK(other.try_lock("k").outcome == Verdict::kBusy);
  CHECK(other.lock_for("k", 200ms).outcome == Verdict::kTimeout);
  quorum.until_waiting(0);
  {
    Locks leaver(quorum.place());
    auto wait = leaver.lock_future("k");
    quorum.until_waiting(1);
  }
  quorum.until_waiting(0);
  CHECK(held->is_locked());
  CHECK(held->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: three clients that each miss another server all go on") {
  Quorum quorum;
  Listener deaf[kServers];
  std::vector<Fd> in_its_queue;  // so that the system accepts no further connection
  for (Listener& listener : deaf) in_its_queue.push_back(connect_tcp(listener.port()));
  Crowd crowd(20);
  for (size_t client = 0; client < kServers; ++client) crowd.add(quorum.place(client, deaf[client].port()));
  CHECK(crowd.count() == 3 * 20);
}

TEST_CASE("quorum wait: clients behind a network that cuts and delays all go on") {
  Quorum quorum;
  ChaosProxy proxy(kServers, 5, {.cut_one_in = 50, .delay_one_in = 10, .longest_delay_ms = 5});
  std::string place = "quorum://";
  for (size_t i = 0; i < kServers; ++i) {
    proxy.lead_to(i, quorum.port(i));
    place += (i == 0 ? "" : ",") + ("127.0.0.1:" + std::to_string(proxy.port(i)));
  }
  Crowd crowd(10);
  for (int client = 0; client < 3; ++client) crowd.add(place);
  crowd.add(quorum.place());
  CHECK(crowd.count() == 4 * 10);
}

TEST_CASE("quorum wait: a server that is killed and restarted during the wait queues it again") {
  Quorum quorum;
  Locks holder(quorum.place());
  Result<Hold> held = holder.lock("k");
  REQUIRE(held.ok());
  quorum.until_waiting(0);
  Locks other(quorum.place());
  auto wait = other.lock_future("k");
  quorum.until_waiting(1);
  for (size_t i = 0; i < kServers; ++i) {
    quorum.kill(i);
    quorum.start(i);
    until("the wait is there again", [&] { return quorum.waiters(i) == 1; });
    until("the hold is there again",
          [&] { return quorum.ask(i, "GET k") == "\"" + std::string(held->owner()) + "\""; });
  }
  CHECK(held->is_locked());
  CHECK(held->unlock().ok());
  Result<Hold> next = wait.get();
  REQUIRE_MESSAGE(next.ok(), next.message);
  CHECK(next->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: with a stopped or killed server the others serve the waiters") {
  for (const int fault : {SIGSTOP, SIGKILL}) {
    for (size_t bad = 0; bad < kServers; ++bad) {
      Quorum quorum;
      Locks client(quorum.place());
      Result<Hold> held = client.lock("k");
      REQUIRE(held.ok());
      quorum.until_waiting(0);
      auto wait = client.lock_future("k");
      quorum.until_waiting(1);
      fault == SIGKILL ? quorum.kill(bad) : quorum.signal(bad, SIGSTOP);
      CHECK(held->unlock().ok());
      Result<Hold> next = wait.get();
      REQUIRE_MESSAGE(next.ok(), next.message);
      CHECK(next->token() > held->token());
      CHECK(next->unlock().ok());
      fault == SIGKILL ? quorum.start(bad) : quorum.signal(bad, SIGCONT);
      quorum.until_free();
    }
  }
}

TEST_CASE("quorum wait: a leftover hold on a minority does not delay a waiter") {
  for (size_t bad = 0; bad < kServers; ++bad) {
    Quorum quorum;
    CHECK(quorum.ask(bad, "LOCK k gone 60000").starts_with("[\"gone\""));
    Locks client(quorum.place());
    const auto begun = std::chrono::steady_clock::now();
    Result<Hold> acquired = client.lock_for("k", 30s);
    REQUIRE_MESSAGE(acquired.ok(), acquired.message);
    CHECK(std::chrono::steady_clock::now() - begun < 10s);
    CHECK(acquired->unlock().ok());
    until("the wait is over", [&] { return quorum.waiters(bad) == 0; });
  }
}

TEST_CASE("quorum wait: the status of a wait names the holder, and not the wait's own vote") {
  Quorum quorum;
  for (const size_t i : {0, 1}) CHECK(quorum.ask(i, "LOCK k gone 60000").starts_with("[\"gone\""));
  Locks client(quorum.place());
  std::promise<WaitStatus> first;
  std::atomic<bool> told = false;
  LockOptions options;
  options.on_waiting = [&](const WaitStatus& status) {
    if (!told.exchange(true)) first.set_value(status);
  };
  auto wait = client.lock_future("k", options);
  until("its vote", [&] { return quorum.ask(2, "EXISTS k") == "1"; });
  const WaitStatus status = first.get_future().get();
  REQUIRE(status.holders.size() == 1);
  CHECK(status.holders[0].owner == "gone");
  CHECK(status.holders[0].servers.size() == 2);
  for (const size_t i : {0, 1}) CHECK(quorum.ask(i, "UNLOCK k gone") == "1");
  Result<Hold> acquired = wait.get();
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->unlock().ok());
}

TEST_CASE("quorum wait: a lock without renewal is valid for its TTL when the call returns") {
  Quorum quorum;
  Locks client(quorum.place());
  LockOptions options = with_ttl(20s);
  options.renew = false;
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  CHECK(acquired->validity() > 15s);
  CHECK(acquired->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: a lock with a warning is valid for its TTL when the call returns") {
  Quorum quorum;
  Locks client(quorum.place());
  Counter warnings;
  LockOptions options = with_ttl(20s);
  options.warn_before = 10s;
  options.on_expiring = [&] { warnings.add(); };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  CHECK(acquired->validity() > 15s);
  CHECK(acquired->unlock().ok());
  CHECK(warnings.count() == 0);
  quorum.until_free();
}

TEST_CASE("quorum wait: a lock is confirmed soon after the grant, and renewed") {
  Quorum quorum;
  Locks client(quorum.place());
  Result<Hold> acquired = client.lock("k", with_ttl(20s));
  REQUIRE(acquired.ok());
  until("the servers have confirmed it", [&] { return acquired->validity() > 15s; });
  CHECK(acquired->extend(40s).ok());
  CHECK(acquired->validity() > 30s);
  CHECK(acquired->unlock().ok());
}

TEST_CASE("quorum wait: a lock that is broken on a majority is lost, and stays so") {
  Quorum quorum;
  Locks client(quorum.place());
  Counter lost;
  LockOptions options;
  options.on_lost = [&](const Status&) { lost.add(); };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  for (size_t i = 0; i < kServers; ++i)
    until("the subscription", [&] { return quorum.ask(i, "PUBSUB NUMSUB __lock__:k").ends_with("1]"); });
  for (size_t i = 0; i < kServers; ++i) quorum.ask(i, "LOCKS BREAK k");
  lost.await(1);
  CHECK_FALSE(acquired->is_locked());
  quorum.until_free();
}

TEST_CASE("quorum wait: at_least keeps the hold, and the next lock of the same thread waits for its end") {
  Quorum quorum;
  Locks client(quorum.place());
  Result<Hold> acquired = client.lock("k", with_ttl(10s));
  REQUIRE(acquired.ok());
  CHECK(acquired->unlock({.at_least = 700ms}).ok());
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  Result<Hold> next = client.lock_for("k", 30s);
  REQUIRE(next.ok());
  CHECK(next->unlock().ok());
  quorum.until_free();
}

TEST_CASE("quorum wait: an unreachable quorum is reported, and its waiters go on when it is back") {
  Quorum quorum;
  for (size_t i = 1; i < kServers; ++i) quorum.kill(i);
  Locks client(quorum.place());
  CHECK(client.try_lock("k").outcome == Verdict::kUnreachable);
  CHECK(client.lock_for("k", 1500ms).outcome == Verdict::kUnreachable);
  Counter failed;
  LockOptions options;
  options.on_attempt_failed = [&](const Status& status) {
    if (status.outcome == Verdict::kUnreachable) failed.add();
  };
  auto wait = client.lock_future("k", options);
  failed.await(1);
  quorum.start(1);
  Result<Hold> acquired = wait.get();
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->unlock().ok());
}

TEST_CASE("quorum wait: an attempt does not fail before the timeout of silent servers") {
  Quorum quorum;
  Locks client(quorum.place() + "?timeout=30000");
  LockOptions options;
  options.max_attempts = 1;
  Counter failed;
  options.on_attempt_failed = [&](const Status&) { failed.add(); };
  for (const size_t i : {0, 1}) quorum.signal(i, SIGSTOP);
  auto wait = client.lock_future("k", options);
  until("the vote of the other server is given back",
        [&] { return quorum.ask(2, "INFO commandstats").find("cmdstat_unlock:") != std::string::npos; });
  for (const size_t i : {0, 1}) quorum.signal(i, SIGCONT);
  Result<Hold> acquired = wait.get();
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(failed.count() == 0);
  CHECK(acquired->unlock().ok());
}

// --- servers without tickets: the suite mixed-versions-library ---

namespace {

// A server of the first release: `make old-server`.
std::string old_program() {
  const char* named = std::getenv("OLD_SERVER");
  return named != nullptr ? named : "build/old/holdfast-server";
}

class OldServer {
 public:
  explicit OldServer(int port) : process_(old_program(), {{"--port", std::to_string(port)}}) {
    if (!process_.out().wait_for("ready to accept connections"))
      throw std::runtime_error("the old server is not ready: " + process_.err().text());
  }

 private:
  Process process_;
};

}  // namespace

TEST_CASE("mixed versions: with servers of the first release, all or some, clients make attempts instead") {
  for (size_t old = 1; old <= kServers; ++old) {
    Quorum quorum;
    std::vector<std::unique_ptr<OldServer>> servers;
    for (size_t i = 0; i < old; ++i) {
      quorum.kill(i);
      servers.push_back(std::make_unique<OldServer>(quorum.port(i)));
    }
    Crowd crowd(5);
    for (int client = 0; client < 3; ++client) crowd.add(quorum.place());
    CHECK(crowd.count() == 3 * 5);
  }
}

TEST_CASE("mixed versions: a server that one of the first release replaces during a wait ends no wait") {
  Quorum quorum;
  Locks holder(quorum.place());
  Result<Hold> held = holder.lock("k");
  REQUIRE(held.ok());
  quorum.until_waiting(0);
  Locks other(quorum.place());
  auto wait = other.lock_future("k");
  quorum.until_waiting(1);
  quorum.kill(0);
  const OldServer old(quorum.port(0));
  CHECK(held->unlock().ok());
  Result<Hold> next = wait.get();
  REQUIRE_MESSAGE(next.ok(), next.message);
  CHECK(next->token() > held->token());
  CHECK(next->unlock().ok());
  Result<Hold> again = other.lock_for("k", 30s);
  REQUIRE_MESSAGE(again.ok(), again.message);
  CHECK(again->unlock().ok());
}

}  // namespace holdfast::integration
