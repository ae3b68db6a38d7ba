// The C++ library on one server: its behaviour is the same with a server process, an embedded engine, and
// stock Redis.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "listener.h"
#include "locks_rig.h"
#include "redis_rig.h"

namespace holdfast::integration {

TEST_CASE_TEMPLATE("library: a lock is acquired, extended and released", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  Result<Hold> acquired = client.try_lock("k", with_ttl(20s));
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  Hold& hold = *acquired;
  CHECK(hold.is_locked());
  CHECK(hold.token() > 0);
  CHECK(hold.validity() > 10s);
  CHECK(hold.validity() < 20s);
  CHECK(server.ask("GET k").text == hold.owner());
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  CHECK(hold.extend(40s).ok());
  CHECK(hold.validity() > 30s);
  CHECK(hold.unlock().ok());
  CHECK_FALSE(hold.is_locked());
  CHECK(hold.unlock().outcome == Verdict::kExpired);
  CHECK(server.is_free("k"));
}

TEST_CASE_TEMPLATE("library: a waiter is granted by the release", Where, SocketServer, EmbeddedServer,
                   RedisServer) {
  Where server;
  Locks client(server.place());
  Result<Hold> first = client.lock("k");
  REQUIRE(first.ok());
  std::future<Result<Hold>> next = client.lock_future("k");
  server.await_waiting(1);
  CHECK(first->unlock().ok());
  Result<Hold> second = next.get();
  REQUIRE(second.ok());
  CHECK(second->token() > first->token());
  CHECK(client.lock_for("k", 50ms).outcome == Verdict::kTimeout);
  server.await_waiting(0);
}

TEST_CASE_TEMPLATE("library: a lock whose hold is destroyed is free at once", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  { const Result<Hold> acquired = client.lock("k"); }
  Result<Hold> again = client.lock_for("k", 30s);
  CHECK(again.ok());
}

TEST_CASE_TEMPLATE("library: the watchdog keeps a lock far beyond its TTL", Where, SocketServer,
                   EmbeddedServer) {
  Where server;
  Locks client(server.place());
  // A TTL longer than a busy machine stands still.
  Result<Hold> acquired = client.lock("k", with_ttl(1500ms));
  REQUIRE(acquired.ok());
  until("twice the TTL", [&] { return server.lock_info("lock_renewals") >= 6; });
  CHECK(acquired->is_locked());
}

TEST_CASE_TEMPLATE("library: a broken lock is reported as lost, once, and is no longer held", Where,
                   SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  Counter lost;
  LockOptions options = with_ttl(30s);
  options.on_lost = [&](const Status& status) {
    CHECK(status.outcome == Verdict::kExpired);
    lost.add();
  };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  until("the subscription", [&] { return server.listeners("k") == 1; });
  CHECK(server.ask("LOCKS BREAK k").integer == 1);
  lost.await(1);
  CHECK_FALSE(acquired->is_locked());
  CHECK(acquired->unlock().outcome == Verdict::kExpired);
  CHECK(lost.count() == 1);
}

TEST_CASE_TEMPLATE("library: LOCKS REVOKE calls the holder's callback, and the hold continues", Where,
                   SocketServer, EmbeddedServer) {
  Where server;
  Locks client(server.place());
  Counter asked;
  LockOptions options;
  options.on_revoke_requested = [&] { asked.add(); };
  Result<Hold> acquired = client.lock("k", options);
  until("the subscription", [&] { return server.listeners("k") == 1; });
  CHECK(server.ask("LOCKS REVOKE k").integer == 1);
  asked.await(1);
  CHECK(acquired->is_locked());
}

TEST_CASE_TEMPLATE("library: the standard library's locks work on a Mutex", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  Mutex a(client, "a");
  Mutex b(client, "b");
  {
    const std::scoped_lock both(a, b);
    CHECK(a.is_locked());
    CHECK(b.is_locked());
    CHECK_FALSE(Mutex(client, "a").try_lock());
  }
  std::unique_lock<Mutex> unique(a, std::defer_lock);
  CHECK(unique.try_lock_for(10s));
  unique.unlock();
  std::shared_lock<Mutex> one(a);
  std::shared_lock<Mutex> two(a, std::try_to_lock);
  CHECK(two.owns_lock());
  CHECK_FALSE(a.try_lock());
  one.unlock();
  two.unlock();
  CHECK(a.try_lock());
  a.unlock();
}

TEST_CASE_TEMPLATE("library: a semaphore has at most as many holders as permits", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  LockOptions options;
  options.mode = Mode::kCountedLock;
  options.limit = 2;
  const Result<Hold> one = client.try_lock("k", options);
  const Result<Hold> two = client.try_lock("k", options);
  CHECK(one.ok());
  CHECK(two.ok());
  CHECK(client.try_lock("k", options).outcome == Verdict::kBusy);
}

TEST_CASE_TEMPLATE("library: a destroyed client releases its holds and cancels its waits", Where,
                   SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Hold orphan;
  std::future<Result<Hold>> waiting;
  {
    Locks client(server.place());
    orphan = client.lock("k").value();
    waiting = client.lock_future("k");
    server.await_waiting(1);
  }
  CHECK(waiting.get().outcome == Verdict::kCancelled);
  CHECK_FALSE(orphan.is_locked());
  CHECK(orphan.unlock().outcome != Verdict::kOk);
  until("the lock is free", [&] { return server.is_free("k"); });
}

TEST_CASE_TEMPLATE("library: a lock that is unlocked before at_least stays held, and then expires", Where,
                   SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  LockOptions options = with_ttl(20s);
  options.on_lost = [](const Status&) { FAIL_CHECK("on_lost was called, but the hold was not lost"); };
  Hold longer = client.lock("longer", options).value();
  CHECK(longer.unlock({.at_least = 1h}).ok());
  CHECK_FALSE(longer.is_locked());
  CHECK(longer.unlock().outcome == Verdict::kExpired);
  CHECK(server.ask("PTTL longer").integer > 3'500'000);
  CHECK(client.try_lock("longer").outcome == Verdict::kBusy);
  Hold shorter = client.lock("shorter", options).value();
  CHECK(shorter.unlock({.at_least = 500ms}).ok());
  CHECK(server.ask("PTTL shorter").integer <= 508);  // at_least plus 1 % and 2 ms
  until("the TTL is over", [&] { return server.is_free("shorter"); });
  Hold over = client.lock("over", options).value();
  until("the TTL is over", [&] { return over.validity() < 20s - 250ms; });
  CHECK(over.unlock({.at_least = 1ms}).ok());
  CHECK(server.is_free("over"));
  Hold wrong = client.lock("wrong", options).value();
  CHECK_THROWS_AS(static_cast<void>(wrong.unlock({.at_least = -1ms})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(wrong.unlock({.at_least = LockOptions::kLongestTtl + 1ms})),
                  std::invalid_argument);
  CHECK(wrong.is_locked());
  CHECK(wrong.unlock({.at_least = LockOptions::kLongestTtl}).ok());
}

TEST_CASE_TEMPLATE("library: a hold after leave() lasts until its TTL is over", Where, SocketServer,
                   EmbeddedServer) {
  Where server;
  LockOptions options = with_ttl(2s);
  options.on_lost = [](const Status&) { FAIL_CHECK("on_lost was called, but the hold was not lost"); };
  {
    Locks client(server.place());
    Hold left = client.lock("k", options).value();
    left.leave();
    CHECK_FALSE(left.is_locked());
    CHECK(left.unlock().outcome == Verdict::kExpired);
    CHECK(left.extend(1s).outcome == Verdict::kExpired);
  }
  const int64_t renewals =
      server.lock_info("lock_renewals");  // 1 if the client still had to check for a loss
  CHECK_FALSE(server.is_free("k"));
  until("the TTL is over", [&] { return server.is_free("k"); });
  CHECK(server.lock_info("lock_renewals") == renewals);
  CHECK(server.lock_info("lock_releases") == 0);
}

TEST_CASE_TEMPLATE("library: a child of fork() may not use its parent's client, and does not change it",
                   Where, SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  Result<Hold> acquired = client.lock("k");
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    try {
      static_cast<void>(client.try_lock("other"));
      wrong = 1;
    } catch (const std::logic_error&) {
    }
    _exit(wrong);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(acquired->is_locked());
  CHECK(acquired->unlock().ok());
}

TEST_CASE_TEMPLATE("library: a thread whose lock was lost neither sees nor releases the next thread's lock",
                   Where, SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  LockOptions brief = with_ttl(100ms);
  brief.renew = false;
  Mutex mutex(client, "k", brief);
  Mutex same(client, "k");
  mutex.lock();
  until("the lock is lost", [&] { return !mutex.is_locked(); });
  std::promise<void> held;
  std::promise<void> done;
  std::thread other([&] {
    same.lock();
    held.set_value();
    done.get_future().get();
    CHECK(same.is_locked());
    same.unlock();
  });
  held.get_future().get();
  CHECK(same.token() == 0);
  same.unlock();
  mutex.unlock();
  CHECK_FALSE(server.is_free("k"));
  done.set_value();
  other.join();
}

TEST_CASE_TEMPLATE("library: a lock that is broken before the client subscribes is reported as lost, too",
                   Where, SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  std::promise<void> lost;
  LockOptions options = with_ttl(1h);
  options.on_lost = [&](const Status&) { lost.set_value(); };
  const Result<Hold> acquired = client.lock("k", options);
  server.ask("LOCKS BREAK k");
  CHECK(lost.get_future().wait_for(kPatience) == std::future_status::ready);
}

// The peer executes the renewal before the lock ends, and its reply arrives after the event.
TEST_CASE("library: a lock that is broken while a renewal is under way is reported as lost") {
  Listener listener;
  Counter revoked;
  Counter lost;
  Locks client("127.0.0.1:" + std::to_string(listener.port()), {"", {}});
  LockOptions options = with_ttl(1h);
  options.on_revoke_requested = [&] { revoked.add(); };
  options.on_lost = [&](const Status&) { lost.add(); };
  std::future<Result<Hold>> acquired = client.try_lock_future("k", options);
  Client peer = listener.accept();
  const std::string request = peer.reply();
  REQUIRE_MESSAGE(request.starts_with(R"(["LOCK", "k", ")"), request);
  const std::string owner = request.substr(15, request.find('"', 15) - 15);
  peer.send("*2\r\n$" + std::to_string(owner.size()) + "\r\n" + owner + "\r\n:7\r\n");
  const Result<Hold> held = acquired.get();
  REQUIRE_MESSAGE(held.ok(), held.message);
  Client events = listener.accept();
  CHECK(events.reply() == R"(["SUBSCRIBE", "__lock__:k"])");
  events.send("*3\r\n$9\r\nsubscribe\r\n$10\r\n__lock__:k\r\n:1\r\n");
  const std::string renewal = peer.reply();  // after each subscription, as events may have been missed
  CHECK_MESSAGE(renewal.starts_with(R"(["RENEW", "k")"), renewal);
  events.send(frame({"message", "__lock__:k", "broken " + owner}));
  events.send(frame({"message", "__lock__:k", "revoke " + owner}));
  revoked.await(1);  // so the client knows the event before it
  peer.send(":1\r\n");
  CHECK(peer.reply() == renewal);
  CHECK(lost.count() == 0);
  peer.send(":0\r\n");
  lost.await(1);
}

TEST_CASE_TEMPLATE("library: a wait with a timeout of zero or less is one attempt", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  const Result<Hold> acquired = client.lock("k");
  CHECK(client.try_lock_future("k").get().outcome == Verdict::kBusy);
  CHECK(client.lock_for("k", 0ms).outcome == Verdict::kBusy);
  CHECK(client.lock_until("k", std::chrono::steady_clock::time_point::min()).outcome == Verdict::kBusy);
  Mutex mutex(client, "k");
  CHECK_FALSE(mutex.try_lock_until(std::chrono::system_clock::time_point::min()));
  CHECK_FALSE(mutex.try_lock_for(-1s));
}

}  // namespace holdfast::integration
