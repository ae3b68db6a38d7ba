// The hand-over of a quorum's lock to the next waiter, with real servers.
#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "locks_rig.h"

namespace holdfast::integration {
namespace {

// Three servers, and a client that holds the lock.
struct Quorum {
  Quorum() : holder(place()), acquired(holder.lock("k")) { REQUIRE(acquired.ok()); }
  std::string place() const {
    std::string text = "quorum://";
    for (const Server& server : servers)
      text += (&server == servers ? "" : ",") + ("127.0.0.1:" + std::to_string(server.port()));
    return text + "?hand-over=yes";
  }
  // The number of waiting requests of the server.
  size_t waiters(size_t server) {
    const std::string info = Client(servers[server]).ask("INFO locks");
    const std::string name = "lock_waiters:";
    return std::stoul(info.substr(info.find(name) + name.size()));
  }
  // Waits until the servers have so many waiting requests, in any order.
  void until_waiting(std::multiset<size_t> expected) {
    until("the waiters", [&] {
      return std::multiset<size_t>{waiters(0), waiters(1), waiters(2)} == expected;
    });
  }

  Server servers[3];
  Locks holder;
  Result<Hold> acquired{Status{}};
};

// Waits for the lock in a thread of its own, with a client of its own.
class Waiter {
 public:
  explicit Waiter(const std::string& place)
      : client_(place), thread_([this] {
          Result<Hold> acquired = client_.lock_for("k", 60s);
          ok_ = acquired.ok();
          if (!ok_) return;
          token_ = acquired->token();
          ok_ = acquired->unlock().ok();
        }) {}
  ~Waiter() {
    if (thread_.joinable()) thread_.join();
  }
  uint64_t token() {
    thread_.join();
    CHECK(ok_);
    return token_;
  }

 private:
  Locks client_;
  std::atomic<bool> ok_ = false;
  std::atomic<uint64_t> token_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("hand-over: the next two waiters, and only those, wait on all servers") {
  Quorum quorum;
  Waiter next(quorum.place());
  quorum.until_waiting({1, 1, 1});
  Waiter second(quorum.place());
  quorum.until_waiting({2, 2, 2});
  Waiter third(quorum.place());
  quorum.until_waiting({2, 2, 3});
  const uint64_t token = quorum.acquired->token();
  CHECK(quorum.acquired->unlock().ok());
  const uint64_t first = next.token();
  CHECK(first > token);
  const uint64_t behind = second.token();
  CHECK(behind > first);
  CHECK(third.token() > behind);
}

TEST_CASE("hand-over: the next waiter gets the lock also if a server dies, as that of the queue") {
  size_t dies = 0;
  SUBCASE("the first server") { dies = 0; }
  SUBCASE("the second server") { dies = 1; }
  SUBCASE("the third server") { dies = 2; }
  Quorum quorum;
  Waiter next(quorum.place());
  quorum.until_waiting({1, 1, 1});
  quorum.servers[dies].stop(SIGKILL);
  CHECK(quorum.acquired->unlock().ok());
  CHECK(next.token() > 0);
}

TEST_CASE("hand-over: a client that ends while it is next leaves no wait and no hold") {
  Quorum quorum;
  {
    Locks leaver(quorum.place());
    Result<Hold> none = leaver.lock_for("k", 300ms);
    CHECK(none.outcome == Verdict::kTimeout);
  }
  quorum.until_waiting({0, 0, 0});
  CHECK(quorum.acquired->unlock().ok());
  Locks other(quorum.place());
  CHECK(other.try_lock("k").ok());
}

}  // namespace holdfast::integration
