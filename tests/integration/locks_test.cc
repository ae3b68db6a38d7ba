// The C++ library against real servers: one, and a quorum with some servers killed or stopped.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "locks_rig.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

std::string place_of(const Server& server) {
  return "holdfast://127.0.0.1:" + std::to_string(server.port());
}

// Several servers; some may be killed or stopped.
class Quorum {
 public:
  explicit Quorum(size_t n) {
    for (size_t i = 0; i < n; ++i) servers_.push_back(std::make_unique<Server>());
  }
  std::string place(const std::string& settings = "timeout=2000") const {
    std::string text = "quorum://";
    for (const auto& server : servers_) {
      if (server != servers_.front()) text += ",";
      text += "127.0.0.1:" + std::to_string(server->port());
    }
    return text + "?" + settings;
  }
  const Server& at(size_t i) const { return *servers_.at(i); }
  size_t size() const { return servers_.size(); }
  void signal(size_t i, int number) { kill(servers_.at(i)->pid(), number); }
  void end(size_t i) { servers_.at(i)->stop(SIGKILL); }

 private:
  std::vector<std::unique_ptr<Server>> servers_;
};

bool is_free(const Server& server, const std::string& key) {
  return Client(server).ask("EXISTS " + key) == "0";
}

}  // namespace

TEST_CASE("library: with a silent server the lock is reported as lost before its validity ends") {
  Quorum servers(1);
  Locks client(place_of(servers.at(0)) + "?timeout=100");
  std::promise<milliseconds> left;
  Hold* hold = nullptr;
  std::atomic<bool> expiring = false;
  LockOptions options = with_ttl(1500ms);
  options.warn_before = 500ms;
  options.on_expiring = [&] { expiring = true; };
  std::promise<void> lost;
  options.on_lost = [&](const Result&) { lost.set_value(); };
  Acquired acquired = client.lock("k", options);
  REQUIRE(acquired.result.ok());
  hold = &acquired.hold;
  servers.signal(0, SIGSTOP);
  lost.get_future().get();
  CHECK(expiring);
  CHECK_FALSE(hold->is_locked());
  servers.signal(0, SIGCONT);
}

TEST_CASE("library: an expiring lock excludes other clients at least for its reported validity") {
  Quorum servers(3);
  Locks client(servers.place());
  Locks other(servers.place());
  LockOptions options = with_ttl(2s);
  options.renew = false;
  std::promise<std::chrono::steady_clock::time_point> lost;
  options.on_lost = [&](const Result&) { lost.set_value(std::chrono::steady_clock::now()); };
  Acquired first = client.lock("k", options);
  REQUIRE(first.result.ok());
  const auto until = std::chrono::steady_clock::now() + first.hold.validity();
  Acquired second = other.lock_for("k", 10s);
  CHECK(std::chrono::steady_clock::now() >= until);
  CHECK(second.result.ok());
  CHECK(lost.get_future().get() < until);
}

TEST_CASE("library: five servers, of which none, one or two are killed") {
  Quorum servers(5);
  Locks client(servers.place());
  for (size_t killed = 0; killed <= 2; ++killed) {
    Acquired acquired = client.lock_for("k", 30s);
    REQUIRE_MESSAGE(acquired.result.ok(), acquired.result.message);
    CHECK(acquired.result.servers.size() == 5);
    CHECK(acquired.hold.unlock().ok());
    servers.end(killed);
  }
  Acquired none = client.lock_for("k", 300ms);
  CHECK(none.result.outcome == Verdict::kUnreachable);
  for (size_t i = 3; i < 5; ++i) until("no hold is left", [&] { return is_free(servers.at(i), "k"); });
}

TEST_CASE("library: five servers, two of them stopped; after they resume, they hold no released lock") {
  Quorum servers(5);
  Locks client(servers.place("timeout=200"));
  servers.signal(0, SIGSTOP);
  servers.signal(3, SIGSTOP);
  Acquired acquired = client.lock_for("k", 30s);
  REQUIRE_MESSAGE(acquired.result.ok(), acquired.result.message);
  CHECK(acquired.hold.unlock().ok());
  servers.signal(0, SIGCONT);
  servers.signal(3, SIGCONT);
  for (size_t i = 0; i < 5; ++i) until("the lock is free", [&] { return is_free(servers.at(i), "k"); });
}

// The server with this many waiters; nullopt if there is none.
std::optional<size_t> where_they_wait(const Quorum& servers, size_t waiters) {
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string told = Client(servers.at(i)).ask("INFO locks");
    if (told.find("lock_waiters:" + std::to_string(waiters)) != std::string::npos) return i;
  }
  return std::nullopt;
}

TEST_CASE("library: on a quorum all waiters are in one queue, and are granted in its order") {
  Quorum servers(5);
  // Time for the first server's answer: without it a client on a slow machine uses another server's queue.
  const std::string place = servers.place("min-wait=10000&max-wait=20000&timeout=10000");
  Locks holder(place);
  Acquired held = holder.lock("k");
  REQUIRE(held.result.ok());
  std::vector<std::unique_ptr<Locks>> clients;
  std::vector<std::future<Acquired>> waits;
  for (size_t n = 1; n <= 6; ++n) {
    clients.push_back(std::make_unique<Locks>(place));
    waits.push_back(clients.back()->lock_future("k", 0ms));
    until("the waiter is in the queue", [&] { return where_they_wait(servers, n).has_value(); });
  }
  uint64_t token = held.hold.token();
  CHECK(held.hold.unlock().ok());
  for (auto& wait : waits) {
    Acquired next = wait.get();
    REQUIRE_MESSAGE(next.result.ok(), next.result.message);
    CHECK(next.hold.token() > token);
    token = next.hold.token();
    CHECK(next.hold.unlock().ok());
  }
}

TEST_CASE("library: a waiter at a server that is stopped or killed is granted by the other servers") {
  for (const int fault : {SIGSTOP, SIGKILL}) {
    Quorum servers(5);
    Locks client(servers.place("timeout=200&max-wait=20"));
    Acquired first = client.lock("k");
    REQUIRE(first.result.ok());
    std::future<Acquired> next = client.lock_future("k", 0ms);
    std::optional<size_t> there;
    until("the client waits", [&] { return (there = where_they_wait(servers, 1)).has_value(); });
    if (fault == SIGKILL) servers.end(*there);
    if (fault == SIGSTOP) servers.signal(*there, SIGSTOP);
    CHECK(first.hold.unlock().ok());
    Acquired second = next.get();
    REQUIRE_MESSAGE(second.result.ok(), second.result.message);
    CHECK(second.hold.token() > first.hold.token());
    if (fault == SIGSTOP) servers.signal(*there, SIGCONT);
    CHECK(second.hold.unlock().ok());
    for (size_t i = 0; i < servers.size(); ++i) {
      if (fault == SIGKILL && i == *there) continue;
      until("no hold is left", [&] { return is_free(servers.at(i), "k"); });
    }
  }
}

TEST_CASE("library: threads count under a Mutex on three servers, and no increment is lost") {
  Quorum servers(3);
  Locks client(servers.place());
  Mutex mutex(client, "counter");
  int count = 0;
  uint64_t last_token = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) {
        const std::lock_guard guard(mutex);
        CHECK(mutex.token() > last_token);
        last_token = mutex.token();
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == 80);
}

TEST_CASE("library: a hold after leave() is on all servers, also on those that granted it last") {
  const Quorum quorum(3);
  {
    Locks client(quorum.place());
    client.lock("k").hold.leave();
  }
  for (size_t i = 0; i < quorum.size(); ++i) CHECK_FALSE(is_free(quorum.at(i), "k"));
}

TEST_CASE("library: an unreachable server and a wrong address are reported") {
  Locks client("holdfast://127.0.0.1:1");
  const Acquired none = client.try_lock("k");
  CHECK(none.result.outcome == Verdict::kUnreachable);
  REQUIRE(none.result.servers.size() == 1);
  CHECK(none.result.servers[0].server == "127.0.0.1:1");
  CHECK(none.result.servers[0].text.find("refused") != std::string::npos);
  CHECK_THROWS_AS(Locks("nowhere:0"), std::invalid_argument);
  CHECK_THROWS_AS(client.try_lock("k", with_ttl(9ms)), std::invalid_argument);
}

TEST_CASE("library: concurrent extends all get a result") {
  Quorum servers(1);
  Locks client(place_of(servers.at(0)));
  Acquired acquired = client.lock("k");
  servers.signal(0, SIGSTOP);
  const auto extend = [&] { return acquired.hold.extend(40s).ok(); };
  auto one = std::async(std::launch::async, extend);
  auto two = std::async(std::launch::async, extend);
  servers.signal(0, SIGCONT);
  REQUIRE(one.wait_for(kPatience) == std::future_status::ready);
  REQUIRE(two.wait_for(kPatience) == std::future_status::ready);
  CHECK(one.get());
  CHECK(two.get());
}

TEST_CASE("library: a shorter TTL counts from its request, whatever the reply") {
  Quorum servers(1);
  Locks client(place_of(servers.at(0)) + "?timeout=100");
  Acquired acquired = client.lock("k", with_ttl(60s));
  servers.signal(0, SIGSTOP);
  CHECK(acquired.hold.extend(5s).outcome == Verdict::kUnreachable);
  CHECK(acquired.hold.validity() < 5s);
  servers.signal(0, SIGCONT);
}

TEST_CASE("library: a waiter on a quorum pauses between its attempts") {
  Quorum servers(3);
  Locks client(servers.place());
  for (size_t i = 1; i < 3; ++i) Client(servers.at(i)).ask("LOCK k other 60000");
  Client control(servers.at(0));
  const int64_t before = info(control, "stats", "total_commands_processed");
  std::vector<std::future<Acquired>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(client.lock_future("k", 1s));
  for (auto& one : waiting) CHECK(one.get().result.outcome == Verdict::kTimeout);
  CHECK(info(control, "stats", "total_commands_processed") - before < 3000);
}

TEST_CASE("library: a lock is released when a quorum replies, however slow the other servers are") {
  Quorum servers(3);
  Locks client(servers.place("timeout=30000"));
  CHECK(client.lock("other").hold.unlock().ok());  // connected
  servers.signal(2, SIGSTOP);
  Acquired acquired = client.lock("k");
  auto given_back = std::async(std::launch::async, [&] { return acquired.hold.unlock().ok(); });
  CHECK(given_back.wait_for(20s) == std::future_status::ready);
  servers.signal(2, SIGCONT);
  CHECK(given_back.get());
}

TEST_CASE("library: the requests of a callback to a client that ends are cancelled") {
  for (int i = 0; i < 20; ++i) {
    auto client = std::make_unique<Locks>("holdfast://127.0.0.1:1");
    Locks* const asked = client.get();
    std::atomic<int> answers = 0;
    for (int n = 0; n < 20; ++n) {
      asked->lock_async("k", 0ms, {}, [&, asked](const Acquired&) {
        asked->lock_async("k", std::nullopt, {}, [&](const Acquired&) { ++answers; });
      });
    }
    client.reset();
    CHECK(answers == 20);
  }
}

}  // namespace holdfast::integration
