// The three verbs of the C++ library in their four forms: try_lock, lock and lock_for, each blocking, as a
// future, with a callback, and as an awaitable. All forms have the same outcomes. A cancelled acquisition
// leaves neither wait nor hold, whenever the cancellation comes.
#include <doctest/doctest.h>

#include <array>
#include <coroutine>
#include <csignal>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client.h"
#include "locks_rig.h"
#include "redis_rig.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

enum class Verb : uint8_t { kTryLock, kLock, kLockFor };
constexpr Verb kVerbs[] = {Verb::kTryLock, Verb::kLock, Verb::kLockFor};
constexpr Verb kWaitingVerbs[] = {Verb::kLock, Verb::kLockFor};

// One acquisition of "k". `wait` is for kLockFor.
struct Call {
  Verb verb = Verb::kLock;
  milliseconds wait = 1h;
  LockOptions options = {};
};

// A coroutine that runs until its end without an owner.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// A coroutine whose owner can destroy it while it waits.
struct Owned {
  struct promise_type {
    Owned get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<> frame;
};

using Promised = std::shared_ptr<std::promise<Result<Hold>>>;

Result<Hold> blocking(Locks& client, const Call& call) {
  if (call.verb == Verb::kTryLock) return client.try_lock("k", call.options);
  if (call.verb == Verb::kLock) return client.lock("k", call.options);
  return client.lock_for("k", call.wait, call.options);
}

std::future<Result<Hold>> as_future(Locks& client, const Call& call) {
  if (call.verb == Verb::kTryLock) return client.try_lock_future("k", call.options);
  if (call.verb == Verb::kLock) return client.lock_future("k", call.options);
  return client.lock_for_future("k", call.wait, call.options);
}

void with_callback(Locks& client, const Call& call, std::function<void(Result<Hold>)> done) {
  if (call.verb == Verb::kTryLock) return client.try_lock_async("k", call.options, std::move(done));
  if (call.verb == Verb::kLock) return client.lock_async("k", call.options, std::move(done));
  client.lock_for_async("k", call.wait, call.options, std::move(done));
}

LockAwaitable awaitable(Locks& client, const Call& call) {
  if (call.verb == Verb::kTryLock) return client.co_try_lock("k", call.options);
  if (call.verb == Verb::kLock) return client.co_lock("k", call.options);
  return client.co_lock_for("k", call.wait, call.options);
}

Detached await_into(LockAwaitable acquisition, Promised promise) {
  promise->set_value(co_await std::move(acquisition));
}

// Begins the call in one form. The future gets its result, whatever the form.
struct Form {
  const char* name;
  std::future<Result<Hold>> (*begin)(Locks& client, const Call& call);
};

const Form kForms[] = {
    {"blocking",
     [](Locks& client, const Call& call) {
       return std::async(std::launch::async, [&client, call] { return blocking(client, call); });
     }},
    {"future", as_future},
    {"callback",
     [](Locks& client, const Call& call) {
       const Promised promise = std::make_shared<std::promise<Result<Hold>>>();
       with_callback(client, call, [promise](Result<Hold> r) { promise->set_value(std::move(r)); });
       return promise->get_future();
     }},
    {"awaitable",
     [](Locks& client, const Call& call) {
       const Promised promise = std::make_shared<std::promise<Result<Hold>>>();
       await_into(awaitable(client, call), promise);
       return promise->get_future();
     }},
};

// Calls `test(form, verb)` for each of the verbs in each form.
template <class Verbs, class Test>
void in_each_form(const Verbs& verbs, Test test) {
  for (const Form& form : kForms) {
    for (const Verb verb : verbs) {
      CAPTURE(form.name);
      CAPTURE(static_cast<int>(verb));
      test(form, verb);
    }
  }
}

Result<Hold> result_of(std::future<Result<Hold>> pending) {
  if (pending.wait_for(kPatience) != std::future_status::ready) throw std::runtime_error("no result");
  return pending.get();
}

LockOptions stopped_by(const std::stop_source& source, milliseconds ttl = 30s) {
  LockOptions options = with_ttl(ttl);
  options.stop = source.get_token();
  return options;
}

// Three servers as a quorum.
class ThreeServers {
 public:
  std::string place() const {
    std::string text = "quorum://";
    for (const Server& server : servers_) text += "127.0.0.1:" + std::to_string(server.port()) + ",";
    text.back() = '?';
    return text + "timeout=2000";
  }
  bool is_free(const std::string& key) {
    return all([&](Client& client) { return client.ask("EXISTS " + key) == "0"; });
  }
  void await_waiting(int64_t n) {
    until("the queues", [&] {
      int64_t waiting = 0;
      for (const Server& server : servers_) {
        Client client(server);
        waiting = std::max(waiting, info(client, "locks", "lock_waiters"));
      }
      return waiting == n;
    });
  }

 private:
  template <class Ask>
  bool all(Ask ask) {
    for (const Server& server : servers_) {
      Client client(server);
      if (!ask(client)) return false;
    }
    return true;
  }

  std::array<Server, 3> servers_;
};

// Keeps the work of ClientOptions::resume until the test's thread runs it.
class Executor {
 public:
  ClientOptions options() {
    ClientOptions options;
    options.resume = [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    };
    return options;
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return work_.empty();
  }
  void run_one() {
    until("work", [this] { return !is_empty(); });
    std::unique_lock lock(mutex_);
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
};

Owned await_and_keep(LockAwaitable acquisition, std::optional<Result<Hold>>& into) {
  into = co_await std::move(acquisition);
}

}  // namespace

TEST_CASE_TEMPLATE("acquire: each form gets a free lock", Where, SocketServer, EmbeddedServer, RedisServer,
                   ThreeServers) {
  Where server;
  Locks client(server.place());
  in_each_form(kVerbs, [&](const Form& form, Verb verb) {
    Result<Hold> acquired = result_of(form.begin(client, {verb}));
    REQUIRE_MESSAGE(acquired.ok(), acquired.message);
    CHECK(acquired->is_locked());
    CHECK(acquired->token() > 0);
    CHECK(acquired->key() == "k");
    CHECK_FALSE(server.is_free("k"));
    CHECK(acquired->unlock().ok());
    until("the lock is free", [&] { return server.is_free("k"); });
  });
}

TEST_CASE_TEMPLATE("acquire: a wait of zero, or of less, is one attempt in each form", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  const Result<Hold> held = client.lock("k");
  for (const Form& form : kForms) {
    CAPTURE(form.name);
    CHECK(result_of(form.begin(client, {Verb::kTryLock})).outcome == Verdict::kBusy);
    for (const milliseconds wait : {0ms, -1ms, milliseconds::min()})
      CHECK(result_of(form.begin(client, {Verb::kLockFor, wait})).outcome == Verdict::kBusy);
    CHECK(result_of(form.begin(client, {Verb::kLockFor, 30ms})).outcome == Verdict::kTimeout);
  }
  CHECK(held->is_locked());
}

TEST_CASE_TEMPLATE("acquire: a wait ends with the release, in each form", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place());
  const auto next_of = [&](const Form& form, const Call& call) {
    Result<Hold> held = client.lock("k");
    auto pending = form.begin(client, call);
    server.await_waiting(1);
    CHECK(held->unlock().ok());
    Result<Hold> next = result_of(std::move(pending));
    REQUIRE_MESSAGE(next.ok(), next.message);
    CHECK(next->unlock().ok());
  };
  in_each_form(kWaitingVerbs, [&](const Form& form, Verb verb) { next_of(form, {verb}); });
  next_of(kForms[1], {Verb::kLockFor, milliseconds::max()});
}

TEST_CASE_TEMPLATE("acquire: a stop before the call cancels it without a request", Where, SocketServer,
                   EmbeddedServer) {
  Where server;
  Locks client(server.place());
  CHECK(client.try_lock("other").ok());
  std::stop_source stop;
  stop.request_stop();
  const int64_t granted = server.lock_info("lock_grants");
  in_each_form(kVerbs, [&](const Form& form, Verb verb) {
    const Result<Hold> none = result_of(form.begin(client, {verb, 1h, stopped_by(stop)}));
    CHECK(none.outcome == Verdict::kCancelled);
    CHECK(none.message == "the caller cancelled the wait");
  });
  CHECK(server.lock_info("lock_grants") == granted);
  CHECK(client.stats().attempts == 1);
}

TEST_CASE_TEMPLATE("acquire: a stop ends a wait at once, and leaves neither wait nor hold", Where,
                   SocketServer, EmbeddedServer, RedisServer, ThreeServers) {
  Where server;
  Locks holder(server.place());
  Locks client(server.place());
  Result<Hold> held = holder.lock("k");
  in_each_form(kWaitingVerbs, [&](const Form& form, Verb verb) {
    std::stop_source stop;
    auto pending = form.begin(client, {verb, 1h, stopped_by(stop)});
    server.await_waiting(1);
    stop.request_stop();
    CHECK(result_of(std::move(pending)).outcome == Verdict::kCancelled);
    server.await_waiting(0);
  });
  CHECK(held->unlock().ok());
  until("the lock is free", [&] { return server.is_free("k"); });
  CHECK(client.try_lock("k").ok());
}

TEST_CASE("acquire: a stop after the grant has no effect") {
  SocketServer server;
  Locks client(server.place());
  in_each_form(kVerbs, [&](const Form& form, Verb verb) {
    std::stop_source stop;
    Result<Hold> acquired = result_of(form.begin(client, {verb, 1h, stopped_by(stop)}));
    stop.request_stop();
    CHECK(acquired->extend(20s).ok());  // after the request for a stop on the client's thread
    CHECK(acquired->is_locked());
    CHECK(acquired->unlock().ok());
  });
}

TEST_CASE_TEMPLATE("acquire: a stop at the moment of the grant gives the lock or nothing", Where,
                   SocketServer, EmbeddedServer, RedisServer, ThreeServers) {
  Where server;
  Locks holder(server.place());
  Locks client(server.place());
  int granted = 0;
  for (int round = 0; round < 60; ++round) {
    const Form& form = kForms[round % 4];
    Result<Hold> held = holder.lock("k");
    REQUIRE_MESSAGE(held.ok(), held.message);
    std::stop_source stop;
    auto pending = form.begin(client, {Verb::kLock, 1h, stopped_by(stop)});
    server.await_waiting(1);
    std::thread releaser([&] { CHECK(held->unlock().ok()); });
    std::this_thread::sleep_for(std::chrono::microseconds(37 * round));
    stop.request_stop();
    Result<Hold> acquired = result_of(std::move(pending));
    releaser.join();
    if (acquired) {
      ++granted;
      CHECK(acquired->unlock().ok());
    } else {
      CHECK(acquired.outcome == Verdict::kCancelled);
    }
    server.await_waiting(0);
    until("no hold is left", [&] { return server.is_free("k"); });
  }
  MESSAGE(granted << " of 60 were granted");
}

TEST_CASE("acquire: a stop needs no answer, and the grant of a server that was silent is released later") {
  Server server;
  Locks client("holdfast://127.0.0.1:" + std::to_string(server.port()) + "?timeout=60000");
  CHECK(client.try_lock("other").ok());  // connected
  in_each_form(kVerbs, [&](const Form& form, Verb verb) {
    std::stop_source stop;
    kill(server.pid(), SIGSTOP);
    auto pending = form.begin(client, {verb, 1h, stopped_by(stop)});
    std::this_thread::sleep_for(20ms);  // the request is on its way
    stop.request_stop();
    CHECK(result_of(std::move(pending)).outcome == Verdict::kCancelled);
    kill(server.pid(), SIGCONT);
    Client control(server);
    until("no hold is left", [&] { return control.ask("EXISTS k") == "0"; });
    CHECK(client.try_lock("k").ok());
  });
}

TEST_CASE_TEMPLATE("acquire: a destroyed client cancels its waits in each form", Where, SocketServer,
                   EmbeddedServer, RedisServer, ThreeServers) {
  Where server;
  Locks holder(server.place());
  Result<Hold> held = holder.lock("k");
  in_each_form(kWaitingVerbs, [&](const Form& form, Verb verb) {
    auto client = std::make_unique<Locks>(server.place());
    std::stop_source stop;
    auto pending = form.begin(*client, {verb, 1h, stopped_by(stop)});
    server.await_waiting(1);
    client.reset();
    stop.request_stop();
    const Result<Hold> none = result_of(std::move(pending));
    CHECK(none.outcome == Verdict::kCancelled);
    CHECK(none.message == "the client was destroyed");
    server.await_waiting(0);
  });
  CHECK(held->unlock().ok());
  until("the lock is free", [&] { return server.is_free("k"); });
}

TEST_CASE("acquire: a future that is dropped releases the lock that it gets") {
  SocketServer server;
  Locks client(server.place());
  Result<Hold> held = client.lock("k");
  static_cast<void>(client.lock_future("k"));
  server.await_waiting(1);
  CHECK(held->unlock().ok());
  until("the lock is free", [&] { return server.is_free("k") && server.lock_info("lock_waiters") == 0; });
}

TEST_CASE("acquire: a callback on the client's thread may stop a wait and begin others, but not block") {
  SocketServer server;
  Locks client(server.place());
  const Result<Hold> held = client.lock("k");
  std::stop_source stop;
  LockOptions options = stopped_by(stop);
  options.on_waiting = [&](const WaitStatus&) { stop.request_stop(); };
  std::promise<bool> blocked;
  std::promise<Verdict> second;
  client.lock_async("k", options, [&](const Result<Hold>& first) {
    CHECK(first.outcome == Verdict::kCancelled);
    client.try_lock_async("k", {}, [&](const Result<Hold>& r) { second.set_value(r.outcome); });
    try {
      static_cast<void>(client.try_lock("k"));
      blocked.set_value(true);
    } catch (const std::logic_error&) {
      blocked.set_value(false);
    }
  });
  CHECK_FALSE(blocked.get_future().get());
  CHECK(second.get_future().get() == Verdict::kBusy);
}

TEST_CASE("acquire: wrong options are rejected by the call, in each form") {
  SocketServer server;
  Locks client(server.place());
  for (const Verb verb : kVerbs) {
    const Call wrong{verb, 1h, with_ttl(9ms)};
    CHECK_THROWS_AS(static_cast<void>(blocking(client, wrong)), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(as_future(client, wrong)), std::invalid_argument);
    CHECK_THROWS_AS(with_callback(client, wrong, [](const Result<Hold>&) {}), std::invalid_argument);
    CHECK_THROWS_AS(static_cast<void>(awaitable(client, wrong)), std::invalid_argument);
    CHECK_THROWS_AS(with_callback(client, {verb}, nullptr), std::invalid_argument);
  }
  CHECK(client.stats().attempts == 0);
}

TEST_CASE("await: a coroutine continues where the program wants it, and may block there") {
  SocketServer server;
  Executor executor;
  Locks client(server.place(), executor.options());
  const Promised promise = std::make_shared<std::promise<Result<Hold>>>();
  await_into(client.co_lock("k"), promise);
  auto pending = promise->get_future();
  until("the grant", [&] { return !server.is_free("k"); });
  until("work", [&] { return !executor.is_empty(); });
  CHECK(pending.wait_for(0ms) == std::future_status::timeout);
  executor.run_one();
  Result<Hold> acquired = result_of(std::move(pending));
  REQUIRE(acquired.ok());
  CHECK(acquired->unlock().ok());
}

TEST_CASE(
    "await: without an executor a coroutine continues on the client's thread, where it must not block") {
  SocketServer server;
  Locks client(server.place());
  std::promise<bool> blocked;
  const auto run = [&]() -> Detached {
    Result<Hold> acquired = co_await client.co_lock("k");
    try {
      static_cast<void>(acquired->unlock());
      blocked.set_value(true);
    } catch (const std::logic_error&) {
      blocked.set_value(false);
    }
  };
  run();
  CHECK_FALSE(blocked.get_future().get());
  until("the end of the coroutine released the lock", [&] { return server.is_free("k"); });
}

TEST_CASE_TEMPLATE("await: a coroutine that is destroyed while it waits leaves neither wait nor hold",
                   Where, SocketServer, EmbeddedServer, RedisServer, ThreeServers) {
  Where server;
  Locks client(server.place());
  Result<Hold> held = client.lock("k");
  std::optional<Result<Hold>> never;
  const Owned waiting = await_and_keep(client.co_lock("k"), never);
  server.await_waiting(1);
  waiting.frame.destroy();
  server.await_waiting(0);
  CHECK(held->unlock().ok());
  CHECK(client.try_lock("k").ok());
  CHECK_FALSE(never);
}

TEST_CASE("await: a coroutine that is destroyed between the grant and its turn releases the lock") {
  SocketServer server;
  Executor executor;
  Locks client(server.place(), executor.options());
  std::optional<Result<Hold>> never;
  const Owned granted = await_and_keep(client.co_lock("k"), never);
  until("work", [&] { return !executor.is_empty(); });
  granted.frame.destroy();
  until("the lock is free", [&] { return server.is_free("k"); });
  executor.run_one();  // does nothing
  CHECK_FALSE(never);
}

TEST_CASE("await: an acquisition begins when it is awaited, and once") {
  SocketServer server;
  Locks client(server.place());
  { const LockAwaitable unused = client.co_lock("k"); }
  LockAwaitable acquisition = client.co_lock(std::string("a key that ends before the acquisition"));
  CHECK(client.stats().attempts == 0);
  std::promise<bool> again;
  const auto run = [&]() -> Detached {
    const Result<Hold> first = co_await std::move(acquisition);
    CHECK(first->key() == "a key that ends before the acquisition");
    try {
      static_cast<void>(co_await std::move(acquisition));
      again.set_value(true);
    } catch (const std::logic_error&) {
      again.set_value(false);
    }
  };
  run();
  CHECK_FALSE(again.get_future().get());
}

TEST_CASE("mutex: a stop ends lock() with an Error, and the other functions with false") {
  SocketServer server;
  Locks client(server.place());
  const Result<Hold> held = client.lock("k");
  std::stop_source stop;
  Mutex mutex(client, "k", stopped_by(stop));
  std::jthread stopper([&] {
    server.await_waiting(1);
    stop.request_stop();
  });
  try {
    mutex.lock();
    FAIL("locked");
  } catch (const Error& error) {
    CHECK(error.status().outcome == Verdict::kCancelled);
  }
  CHECK_FALSE(mutex.try_lock());
  CHECK_FALSE(mutex.try_lock_shared_for(1h));
  server.await_waiting(0);
}

}  // namespace holdfast::integration
