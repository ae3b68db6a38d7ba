// The library with a login: every kind of lock with only the permissions that docs/security.md lists, and
// the result of a rejected login.
#include <doctest/doctest.h>

#include <future>
#include <string>
#include <tuple>

#include "holdfast/lease.h"
#include "locks_rig.h"

namespace holdfast::integration {
namespace {

// As in docs/security.md.
const Words kRules{"~job:*",           "&__lock__:job:*", "+lock",          "+renew",       "+unlock",
                   "+fence",           "+lease",          "+subscribe",     "+unsubscribe", "+locks|yield",
                   "+locks|heartbeat", "+client|setname", "+client|setinfo"};

// A server with a password and the user `app`, and its administrator.
class GuardedServer {
 public:
  GuardedServer() { make_user("s,c@ret"); }

  std::string host() const { return "127.0.0.1:" + std::to_string(server_.port()); }
  std::string place() const { return "holdfast://app:s%2cc%40ret@" + host(); }
  Value ask(const Words& words) { return admin_.ask(words); }
  void make_user(const std::string& password) {
    Words words{"ACL", "SETUSER", "app", "reset", "on", ">" + password};
    words.insert(words.end(), kRules.begin(), kRules.end());
    REQUIRE(ask(words).text == "OK");
  }
  // Whether the server has rejected any request of the user.
  bool has_refused() { return !ask({"ACL", "LOG"}).elements.empty(); }
  // Closes all connections except the administrator's. The clients must log in again.
  void cut() { ask({"CLIENT", "KILL", "SKIPME", "yes"}); }
  void await_waiting() {
    until("one waiter is in the queue", [&] {
      return ask({"INFO", "locks"}).text.find("lock_waiters:1") != std::string::npos;
    });
  }

 private:
  static Address admin_of(const Server& server) {
    Address address{"127.0.0.1", server.port()};
    address.password = "admin";
    return address;
  }
  Server server_{{"--requirepass", "admin"}};
  Rig admin_{admin_of(server_)};
};

LockOptions counted(uint32_t limit) {
  LockOptions options;
  options.mode = Mode::kCountedLock;
  options.limit = limit;
  return options;
}

LockOptions shared() {
  LockOptions options;
  options.mode = Mode::kSharedLock;
  return options;
}

void take_and_release(Locks& client, const LockOptions& options) {
  Result<Hold> acquired = client.try_lock("job:1", options);
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->extend(60s).ok());
  CHECK(acquired->unlock().ok());
}

}  // namespace

TEST_CASE(
    "login: a user with the permissions of the manual acquires, renews and releases every kind of lock") {
  GuardedServer server;
  Locks client(server.place());
  take_and_release(client, {});
  take_and_release(client, shared());
  take_and_release(client, counted(3));
  Result<Hold> one = client.try_lock("job:1", shared());
  Result<Hold> two = client.try_lock("job:1", shared());
  CHECK((one.ok() && two.ok()));
  CHECK_FALSE(server.has_refused());
}

TEST_CASE(
    "login: a user with these permissions waits in the queue, and is notified of a revoke and a loss") {
  GuardedServer server;
  Locks client(server.place());
  Counter revoked;
  Counter lost;
  LockOptions options;
  options.on_revoke_requested = [&] { revoked.add(); };
  options.on_lost = [&](const Status&) { lost.add(); };
  Result<Hold> first = client.lock("job:1");
  std::future<Result<Hold>> next = client.lock_future("job:1", options);
  server.await_waiting();
  CHECK(first->unlock().ok());
  const Result<Hold> second = next.get();
  REQUIRE(second.ok());
  until("the subscription", [&] {
    return server.ask({"PUBSUB", "NUMSUB", "__lock__:job:1"}).elements.at(1).integer == 1;
  });
  server.ask({"LOCKS", "REVOKE", "job:1"});
  revoked.await(1);
  server.ask({"LOCKS", "BREAK", "job:1"});
  lost.await(1);
  CHECK_FALSE(server.has_refused());
}

TEST_CASE("login: a user with these permissions acquires a lock on a quorum, with FENCE if tokens differ") {
  GuardedServer a;
  GuardedServer b;
  GuardedServer c;
  const std::string far = std::to_string(client::Loop::clock_us() + 3600'000'000);
  a.ask({"LOCK", "job:1", "x", "1000", "TOKEN", far});
  a.ask({"UNLOCK", "job:1", "x"});
  Locks client("quorum://app:s%2cc%40ret@" + a.host() + "," + b.host() + "," + c.host());
  Result<Hold> acquired = client.lock("job:1");
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->unlock().ok());
  take_and_release(client, {});
  for (GuardedServer* server : {&a, &b, &c}) CHECK_FALSE(server->has_refused());
}

TEST_CASE("login: a user with these permissions leases, renews, confirms and cancels") {
  GuardedServer server;
  Locks client(server.place());
  Leases leases(client);
  Lease kept = leases.lease({{"job:1", "a"}, {"job:2", "b"}}).value();
  CHECK(kept.renew(60s).ok());
  CHECK(kept.confirm().ok());
  Lease dropped = leases.lease({{"job:3", "a"}}).value();
  CHECK(dropped.cancel().ok());
  CHECK(leases.lease({{"job:1", "c"}}).outcome == Verdict::kBusy);
  CHECK_FALSE(server.has_refused());
}

TEST_CASE("login: the client logs in again after a disconnect") {
  GuardedServer server;
  Locks client(server.place());
  for (int i = 0; i < 4; ++i) {
    Result<Hold> acquired =
        client.lock("job:1");  // not try_lock(): a request may be lost with the connection
    REQUIRE_MESSAGE(acquired.ok(), acquired.message);
    CHECK(acquired->unlock().ok());
    server.cut();
  }
}

TEST_CASE("login: a rejected login ends a wait at once, and the result says what to do") {
  GuardedServer server;
  const auto tried = [&](const std::string& login, const std::string& key) {
    return Locks("holdfast://" + login + server.host()).lock(key);
  };
  for (const auto& [login, key, error, code, advice] :
       {std::tuple{"", "job:1", ServerError::kNoLogin, "NOAUTH", "HOLDFAST_PASSWORD"},
        std::tuple{"app:no@", "job:1", ServerError::kWrongLogin, "WRONGPASS",
                   "check the user and the password"},
        std::tuple{"nobody:no@", "job:1", ServerError::kWrongLogin, "WRONGPASS", "check the user"},
        std::tuple{":no@", "job:1", ServerError::kWrongLogin, "WRONGPASS", "check the user"},
        std::tuple{"app:s%2cc%40ret@", "other", ServerError::kNoRight, "NOPERM", "docs/security.md"}}) {
    const auto result = tried(login, key);
    CHECK(result.outcome == Verdict::kRefused);
    CHECK(result.servers.at(0).error == error);
    CHECK_MESSAGE(result.message.starts_with(code), result.message);
    CHECK_MESSAGE(result.message.find(advice) != std::string::npos, result.message);
  }
}

TEST_CASE("login: a wait ends if the password changes meanwhile and the client must log in again") {
  GuardedServer server;
  Locks client(server.place());
  Locks other("holdfast://:admin@" + server.host());
  const Result<Hold> held = other.lock("job:1");
  std::future<Result<Hold>> waiting = client.lock_future("job:1");
  server.await_waiting();
  server.make_user("new");
  server.cut();
  const auto result = waiting.get();
  CHECK(result.outcome == Verdict::kRefused);
  CHECK_MESSAGE(result.message.starts_with("WRONGPASS"), result.message);
}

TEST_CASE("login: a login for a server without a password is rejected with advice") {
  const Server open;
  const auto result = Locks("holdfast://:pw@127.0.0.1:" + std::to_string(open.port())).lock("k");
  CHECK(result.outcome == Verdict::kRefused);
  CHECK_MESSAGE(result.message.find("leave the login out") != std::string::npos, result.message);
}

}  // namespace holdfast::integration
