// The engine inside the program: the differences from a server. locks_single_test.cc tests the common
// behaviour.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "locks_rig.h"

namespace holdfast::integration {
namespace {

LockOptions of_mode(Mode mode, uint32_t limit = 1) {
  LockOptions options;
  options.mode = mode;
  options.limit = limit;
  return options;
}

LockOptions brief() {
  LockOptions options = with_ttl(100ms);
  options.renew = false;
  return options;
}

// Calls `work` in a child made by fork(). Whether the child found no fault.
template <typename Work>
bool child_succeeds(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // so that the child cannot hang for ever
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

TEST_CASE("embedded: all clients of a program share one engine, and results name it") {
  const EmbeddedServer server;
  Locks one(server.place());
  Locks other(server.place());
  const Result<Hold> acquired = one.lock("k");
  REQUIRE(acquired.ok());
  CHECK(acquired.servers.at(0).server == server.place());
  const Result<Hold> busy = other.try_lock("k");
  CHECK(busy.outcome == Verdict::kBusy);
  Locks unnamed("embedded:");
  CHECK(unnamed.try_lock("k").servers.at(0).server == "embedded");
}

TEST_CASE("embedded: with on_waiting, a wait reports the holder and its place in the queue") {
  const EmbeddedServer server;
  Locks locks(server.place());
  const Result<Hold> held = locks.lock("k");
  std::promise<WaitStatus> told;
  holdfast::Client client(server.place());
  LockOptions options;
  // The next call is only after 5 s.
  options.on_waiting = [&](const WaitStatus& status) { told.set_value(status); };
  client.lock_async("k", options, [](const Result<Hold>&) {});
  auto answer = told.get_future();
  REQUIRE(answer.wait_for(kPatience) == std::future_status::ready);
  const WaitStatus status = answer.get();
  REQUIRE(status.holders.size() == 1);
  CHECK(status.holders[0].owner == held->owner());
  CHECK(status.holders[0].left.value() <= milliseconds(30000));
  CHECK(status.holders[0].servers == std::vector<std::string>{server.place()});
  CHECK(status.place == 1);
  CHECK(status.waiters == 1);
  CHECK(status.servers.at(0).outcome == Verdict::kOk);
}

TEST_CASE("embedded: engines with different names are independent") {
  const EmbeddedServer a;
  const EmbeddedServer b;
  Locks one(a.place());
  Locks other(b.place());
  const Result<Hold> first = one.lock("k");
  const Result<Hold> second = other.try_lock("k");
  CHECK(first.ok());
  CHECK(second.ok());
}

TEST_CASE("embedded: readers share a lock, and a writer does not get it") {
  const EmbeddedServer server;
  Locks client(server.place());
  Result<Hold> one = client.try_lock("k", of_mode(Mode::kSharedLock));
  Result<Hold> two = client.try_lock("k", of_mode(Mode::kSharedLock));
  CHECK(one.ok());
  CHECK(two.ok());
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  CHECK(one->unlock().ok());
  CHECK(two->unlock().ok());
  CHECK(client.try_lock("k").ok());
}

TEST_CASE("embedded: waiters of different clients are granted in FIFO order") {
  EmbeddedServer server;
  Locks first(server.place());
  Result<Hold> acquired = first.lock("k");
  std::vector<std::unique_ptr<Locks>> clients;
  std::vector<std::future<Result<Hold>>> waiting;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Locks>(server.place()));
    waiting.push_back(clients.back()->lock_future("k"));
    server.await_waiting(i + 1);
  }
  uint64_t token = acquired->token();
  for (std::future<Result<Hold>>& next : waiting) {
    CHECK(acquired->unlock().ok());
    acquired = next.get();
    REQUIRE(acquired.ok());
    CHECK(acquired->token() > token);
    token = acquired->token();
  }
}

TEST_CASE("embedded: a hold expires without a request, and the waiter gets the lock") {
  const EmbeddedServer server;
  Locks client(server.place());
  Locks other(server.place());
  const auto began = std::chrono::steady_clock::now();
  client.lock("k", with_ttl(500ms))->leave();
  const Result<Hold> next = other.lock("k");
  CHECK(next.ok());
  // The engine uses another clock, with whole milliseconds.
  CHECK(std::chrono::steady_clock::now() - began >= 499ms);
}

TEST_CASE("embedded: a hold that is not renewed is reported as lost") {
  const EmbeddedServer server;
  Locks client(server.place());
  std::promise<void> lost;
  LockOptions options = brief();
  options.on_lost = [&](const Status&) { lost.set_value(); };
  const Result<Hold> acquired = client.lock("k", options);
  CHECK(lost.get_future().wait_for(kPatience) == std::future_status::ready);
  CHECK_FALSE(acquired->is_locked());
}

TEST_CASE("embedded: a holder is warned before its hold expires") {
  const EmbeddedServer server;
  Locks client(server.place());
  std::promise<void> warned;
  LockOptions options = with_ttl(60s);
  options.renew = false;
  options.warn_before = 59s;
  options.on_expiring = [&] { warned.set_value(); };
  const Result<Hold> acquired = client.lock("k", options);
  warned.get_future().get();
  CHECK(acquired->is_locked());
}

TEST_CASE("embedded: a wait that would be a deadlock is rejected") {
  EmbeddedServer server;
  Inbox<Reply> inbox;
  Inbox<Reply> refused;
  Rig rig(server.address());
  rig.send({"LOCK", "a", "alice", "60000"});
  rig.send({"LOCK", "b", "bob", "60000"});
  rig.wait({"LOCK", "b", "alice", "60000", "WAIT", "0", "SESSION"}, inbox);
  server.await_waiting(1);
  rig.wait({"LOCK", "a", "bob", "60000", "WAIT", "0", "SESSION"}, refused);
  CHECK(refused.take().text.starts_with("DEADLOCK"));
  rig.send({"UNLOCK", "b", "bob"});
  CHECK(inbox.take().kind == Kind::kGrant);
}

TEST_CASE("embedded: a connection that the engine closes is opened again") {
  const EmbeddedServer server;
  Rig rig(server.address());
  CHECK(rig.send({"QUIT"}).text == "OK");
  CHECK(rig.send({"PING"}).text == "PONG");
}

TEST_CASE("embedded: the engine ends with its last client, and the next one's tokens are larger") {
  uint64_t token = 0;
  for (int i = 0; i < 3; ++i) {
    Locks client("embedded:brief");
    Result<Hold> acquired = client.try_lock("k");
    REQUIRE(acquired.ok());
    CHECK(acquired->token() > token);
    token = acquired->token();
    acquired->leave();
  }
}

TEST_CASE("embedded: an idle client keeps the engine alive, with the holds in it") {
  Locks idle("embedded:kept");
  {
    Locks client("embedded:kept");
    client.lock("k")->leave();
  }
  CHECK(idle.try_lock("k").outcome == Verdict::kBusy);
}

TEST_CASE("embedded: threads of two clients count under a lock, and no increment is lost") {
  const EmbeddedServer server;
  Locks one(server.place());
  Locks other(server.place());
  Mutex mutexes[] = {Mutex(one, "counter"), Mutex(other, "counter")};
  int64_t count = 0;
  uint64_t last_token = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Mutex& mutex = mutexes[i % 2];
      for (int n = 0; n < 100; ++n) {
        const std::lock_guard guard(mutex);
        const uint64_t token = mutex.token();
        if (token > last_token) ++count;
        last_token = token;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count == 800);
}

TEST_CASE("embedded: many clients at once, with abandoned waits, leave no hold and no waiter") {
  EmbeddedServer server;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) {
        Locks client(server.place());
        const std::future<Result<Hold>> given_up = client.lock_future("k");
        const Result<Hold> acquired = client.lock_for("k", 1ms, brief());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  until("the lock is free", [&] { return server.is_free("k"); });
  server.await_waiting(0);
}

TEST_CASE("embedded: a child of fork() has its own engine, even if the parent's engine is busy") {
  const EmbeddedServer server;
  Locks client(server.place());
  Result<Hold> acquired = client.lock("k");
  Inbox<Reply> done;
  Rig rig(server.address());
  std::promise<void> begins;
  rig.loop().post([&] {
    begins.set_value();  // from now on the engine is busy and holds its mutex
    rig.link().send({"EVAL", "local n = 0 for i = 1, 1e7 do n = n + i end return 'over'", "0"}, kLong,
                    [&](const Reply& reply) { done.put(reply); });
  });
  begins.get_future().get();
  CHECK(child_succeeds([&] {
    Locks fresh(server.place());
    Result<Hold> own = fresh.try_lock("k");
    if (!own.ok() || !own->unlock().ok()) return false;
    try {
      static_cast<void>(client.try_lock("k"));
    } catch (const std::logic_error&) {
      return true;
    }
    return false;
  }));
  CHECK(done.take().text == "over");
  CHECK(acquired->unlock().ok());
}

}  // namespace holdfast::integration
