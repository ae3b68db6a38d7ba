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
  options.on_lost = [&](const Status&) { lost.set_value(); };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  hold = &*acquired;
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
  options.on_lost = [&](const Status&) { lost.set_value(std::chrono::steady_clock::now()); };
  Result<Hold> first = client.lock("k", options);
  REQUIRE(first.ok());
  const auto until = std::chrono::steady_clock::now() + first->validity();
  Result<Hold> second = other.lock_for("k", 10s);
  CHECK(std::chrono::steady_clock::now() >= until);
  CHECK(second.ok());
  CHECK(lost.get_future().get() < until);
}

TEST_CASE("library: five servers, of which none, one or two are killed") {
  Quorum servers(5);
  Locks client(servers.place());
  for (size_t killed = 0; killed <= 2; ++killed) {
    Result<Hold> acquired = client.lock_for("k", 30s);
    REQUIRE_MESSAGE(acquired.ok(), acquired.message);
    CHECK(acquired.servers.size() == 5);
    CHECK(acquired->unlock().ok());
    servers.end(killed);
  }
  Result<Hold> none = client.lock_for("k", 300ms);
  CHECK(none.outcome == Verdict::kUnreachable);
  for (size_t i = 3; i < 5; ++i) until("no hold is left", [&] { return is_free(servers.at(i), "k"); });
}

TEST_CASE("library: five servers, two of them stopped; after they resume, they hold no released lock") {
  Quorum servers(5);
  Locks client(servers.place("timeout=200"));
  servers.signal(0, SIGSTOP);
  servers.signal(3, SIGSTOP);
  Result<Hold> acquired = client.lock_for("k", 30s);
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->unlock().ok());
  servers.signal(0, SIGCONT);
  servers.signal(3, SIGCONT);
  for (size_t i = 0; i < 5; ++i) until("the lock is free", [&] { return is_free(servers.at(i), "k"); });
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
    client.lock("k")->leave();
  }
  for (size_t i = 0; i < quorum.size(); ++i) CHECK_FALSE(is_free(quorum.at(i), "k"));
}

TEST_CASE("library: an unreachable server and a wrong address are reported") {
  Locks client("holdfast://127.0.0.1:1");
  const Result<Hold> none = client.try_lock("k");
  CHECK(none.outcome == Verdict::kUnreachable);
  REQUIRE(none.servers.size() == 1);
  CHECK(none.servers[0].server == "127.0.0.1:1");
  CHECK(none.servers[0].text.find("refused") != std::string::npos);
  CHECK_THROWS_AS(Locks("nowhere:0"), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(client.try_lock("k", with_ttl(9ms))), std::invalid_argument);
}

TEST_CASE("library: concurrent extends all get a result") {
  Quorum servers(1);
  Locks client(place_of(servers.at(0)));
  Result<Hold> acquired = client.lock("k");
  servers.signal(0, SIGSTOP);
  const auto extend = [&] { return acquired->extend(40s).ok(); };
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
  Result<Hold> acquired = client.lock("k", with_ttl(60s));
  servers.signal(0, SIGSTOP);
  CHECK(acquired->extend(5s).outcome == Verdict::kUnreachable);
  CHECK(acquired->validity() < 5s);
  servers.signal(0, SIGCONT);
}

TEST_CASE("library: a waiter on a quorum pauses between its attempts") {
  Quorum servers(3);
  Locks client(servers.place());
  for (size_t i = 1; i < 3; ++i) Client(servers.at(i)).ask("LOCK k other 60000");
  Client control(servers.at(0));
  const int64_t before = info(control, "stats", "total_commands_processed");
  std::vector<std::future<Result<Hold>>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(client.lock_for_future("k", 1s));
  for (auto& one : waiting) CHECK(one.get().outcome == Verdict::kTimeout);
  CHECK(info(control, "stats", "total_commands_processed") - before < 3000);
}

TEST_CASE("library: a lock is released when a quorum replies, however slow the other servers are") {
  Quorum servers(3);
  Locks client(servers.place("timeout=30000"));
  CHECK(client.lock("other")->unlock().ok());  // connected
  servers.signal(2, SIGSTOP);
  Result<Hold> acquired = client.lock("k");
  auto given_back = std::async(std::launch::async, [&] { return acquired->unlock().ok(); });
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
      asked->lock_async("k", {}, [&, asked](const Result<Hold>&) {
        asked->try_lock_async("k", {}, [&](const Result<Hold>&) { ++answers; });
      });
    }
    client.reset();
    CHECK(answers == 20);
  }
}

}  // namespace holdfast::integration
