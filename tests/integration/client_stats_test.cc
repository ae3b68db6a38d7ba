// The counters and events of the C++ library, and the names of its connections, with real servers.
#include <doctest/doctest.h>

#include <csignal>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "client.h"
#include "listener.h"
#include "locks_rig.h"
#include "redis_rig.h"

namespace holdfast::integration {
namespace {

// The events of a client, in words: "granted k", "connected".
class Events {
 public:
  std::function<void(const ClientEvent&)> hook() {
    return [this](const ClientEvent& event) {
      const std::lock_guard lock(mutex_);
      std::string text(name_of(event.kind));
      if (!event.key.empty()) text += " " + std::string(event.key);
      if (event.loss != LossReason::kNone) text += " " + std::string(name_of(event.loss));
      texts_.push_back(text);
    };
  }
  size_t count(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::count(texts_.begin(), texts_.end(), text));
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Acquires the lock as soon as its server can be reached.
void acquire(Locks& client, const std::string& key) {
  until("the lock", [&] { return client.lock_for(key, 30s).ok(); });
}

}  // namespace

TEST_CASE_TEMPLATE("stats: acquisitions, waits, renewals and round trips are counted", Where, SocketServer,
                   EmbeddedServer, RedisServer) {
  Events events;
  Where server;
  Locks client(server.place(), {"app", events.hook()});
  Result<Hold> first = client.lock("k");
  REQUIRE(first.ok());
  std::future<Result<Hold>> next = client.lock_future("k");
  server.await_waiting(1);
  CHECK(first->extend(40s).ok());
  CHECK(first->unlock().ok());
  Result<Hold> second = next.get();
  CHECK(client.try_lock("k").outcome == Verdict::kBusy);
  CHECK(second->unlock().ok());

  const ClientStats stats = client.stats();
  CHECK(stats.acquisitions == 3);
  CHECK(stats.attempts >= 3);
  CHECK(stats.grants == 2);
  CHECK(stats.renewals == 1);
  CHECK(stats.failed_renewals == 0);
  CHECK(stats.waits.count == 1);
  CHECK(stats.waits.longest == stats.waits.total);
  CHECK(stats.waits.total > 0us);
  CHECK(stats.holds.count == 2);
  CHECK(stats.losses.total() == 0);
  REQUIRE(stats.servers.size() == 1);
  CHECK(has(server.place() + "embedded", stats.servers[0].server));
  CHECK(stats.servers[0].requests >= 5);
  CHECK(stats.servers[0].failures == 0);
  CHECK(stats.servers[0].connections >= 1);
  CHECK(stats.servers[0].reconnections == 0);
  CHECK(stats.servers[0].round_trips.count >= 4);
  CHECK(stats.servers[0].round_trips.longest >= stats.servers[0].round_trips.mean());
  CHECK(events.count("granted k") == 2);
  CHECK(events.count("renewed k") == 1);
  CHECK(events.count("released k") == 2);
  CHECK(events.count("not granted k") == 1);
  CHECK(events.count("connected") == stats.servers[0].connections);
}

TEST_CASE_TEMPLATE("stats: a broken lock is a loss by the reason gone", Where, SocketServer, EmbeddedServer,
                   RedisServer) {
  Events events;
  Where server;
  Locks client(server.place(), {"app", events.hook()});
  Counter lost;
  LockOptions options;
  options.on_lost = [&](const Status&) { lost.add(); };
  const Result<Hold> acquired = client.lock("k", options);
  until("the subscription", [&] { return server.listeners("k") == 1; });
  server.ask("LOCKS BREAK k");
  lost.await(1);
  CHECK(client.stats().losses.gone == 1);
  CHECK(client.stats().losses.total() == 1);
  CHECK(events.count("lost k gone") == 1);
}

TEST_CASE_TEMPLATE("stats: a release that finds the lock broken is a loss", Where, SocketServer,
                   EmbeddedServer) {
  Where server;
  Locks client(server.place());
  Result<Hold> acquired = client.lock("k");
  server.ask("LOCKS BREAK k");
  CHECK(acquired->unlock().outcome == Verdict::kExpired);
  CHECK(client.stats().losses.gone == 1);
}

TEST_CASE("stats: a hold without renewals is lost by the reason expired") {
  SocketServer server;
  Locks client(server.place());
  Counter lost;
  LockOptions options = with_ttl(100ms);
  options.renew = false;
  options.on_lost = [&](const Status&) { lost.add(); };
  const Result<Hold> acquired = client.lock("k", options);
  lost.await(1);
  CHECK(client.stats().losses.expired == 1);
}

TEST_CASE("stats: a server that dies is a loss by the reason unreachable, and then a reconnection") {
  Events events;
  const int port = free_port();
  auto server = std::make_unique<Server>(Words{"--port", std::to_string(port)});
  Locks client("127.0.0.1:" + std::to_string(port), {"app", events.hook()});
  Counter lost;
  LockOptions options = with_ttl(500ms);
  options.on_lost = [&](const Status&) { lost.add(); };
  Result<Hold> acquired = client.lock("k", options);
  REQUIRE(acquired.ok());
  server->stop(SIGKILL);
  lost.await(1);
  const ClientStats stats = client.stats();
  CHECK(stats.losses.unreachable == 1);
  CHECK(stats.failed_renewals >= 1);
  CHECK(stats.servers[0].failures >= 1);
  CHECK(events.count("lost k unreachable") == 1);
  CHECK(events.count("connection lost") >= 1);

  const Server again = Server::on_port(port);
  acquire(client, "other");
  CHECK(client.stats().servers[0].reconnections == 1);
}

TEST_CASE("stats: each server of a quorum has its own counters") {
  const Server a;
  const Server b;
  Server c;
  const auto address = [](const Server& s) { return "127.0.0.1:" + std::to_string(s.port()); };
  Locks client("quorum://" + address(a) + "," + address(b) + "," + address(c));
  c.stop(SIGKILL);
  Result<Hold> acquired = client.lock("k");
  REQUIRE(acquired.ok());
  CHECK(acquired->unlock().ok());
  until("the loss of the third server", [&] { return client.stats().servers[2].failures > 0; });
  const ClientStats stats = client.stats();
  REQUIRE(stats.servers.size() == 3);
  CHECK(stats.servers[0].server == address(a));
  CHECK(stats.servers[0].round_trips.count >= 2);
  CHECK(stats.servers[1].round_trips.count >= 2);
  CHECK(stats.servers[2].round_trips.count == 0);
  CHECK(stats.servers[2].connections == 0);
}

TEST_CASE("events: an exception of the hook does not end the client") {
  SocketServer server;
  Locks client(server.place(), {"app", [](const ClientEvent&) { throw std::runtime_error("a mistake"); }});
  for (int i = 0; i < 3; ++i) CHECK(client.lock("k")->unlock().ok());
  CHECK(client.stats().grants == 3);
}

// --- names ---

TEST_CASE_TEMPLATE("names: connections, also those of waits and watches, have the client's name", Where,
                   SocketServer, EmbeddedServer, RedisServer) {
  Where server;
  Locks client(server.place(), {"my app", {}});
  Counter lost;
  LockOptions options;
  options.on_lost = [&](const Status&) { lost.add(); };
  const Result<Hold> acquired = client.lock("k", options);
  std::future<Result<Hold>> next = client.lock_future("k");
  server.await_waiting(1);
  const std::string list = server.ask("CLIENT LIST").text;
  size_t named = 0;
  for (size_t at = list.find("name=my-app"); at != std::string::npos; at = list.find("name=my-app", at + 1))
    ++named;
  CHECK_MESSAGE(named >= 2, list);
}

TEST_CASE("names: a connection to Holdfast also has the library's name and version") {
  SocketServer server;
  Locks client(server.place());
  const Result<Hold> acquired = client.lock("k");
  const std::string list = server.ask("CLIENT LIST").text;
  CHECK_MESSAGE(has(list, "name=holdfast-lib"), list);
  CHECK_MESSAGE(has(list, "lib-name=holdfast"), list);
}

TEST_CASE("names: a connection after a restart has the name again") {
  const int port = free_port();
  auto server = std::make_unique<Server>(Words{"--port", std::to_string(port)});
  Locks client("127.0.0.1:" + std::to_string(port), {"app", {}});
  acquire(client, "k");
  server.reset();
  const Server again = Server::on_port(port);
  acquire(client, "k");
  Rig rig(port);
  CHECK(has(rig.ask({"CLIENT", "LIST"}).text, "name=app"));
}

TEST_CASE("names: a user without the right to set a name uses locks nevertheless") {
  SocketServer server;
  server.ask("ACL SETUSER app on >secret ~* &* +lock +renew +unlock +fence +subscribe +unsubscribe");
  std::string place = server.place();
  Locks client(place.insert(place.find("//") + 2, "app:secret@"), {"app", {}});
  Result<Hold> acquired = client.lock("k");
  REQUIRE_MESSAGE(acquired.ok(), acquired.message);
  CHECK(acquired->unlock().ok());
  CHECK_FALSE(has(server.ask("CLIENT LIST").text, "name=app "));
}

TEST_CASE("names: without a name the client sends no CLIENT request") {
  SocketServer server;
  Locks client(server.place(), {"", {}});
  const Result<Hold> acquired = client.lock("k");
  CHECK_FALSE(has(server.ask("INFO commandstats").text, "client|setname"));
}

TEST_CASE("names: they leave with the first request, and errors in reply do not break the connection") {
  Listener listener;
  Inbox<Reply> inbox;
  Address address{"127.0.0.1", listener.port()};
  address.client_name = "app";
  Rig rig(address);
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  Client peer = listener.accept();
  CHECK(peer.reply() == R"(["CLIENT", "SETNAME", "app"])");
  CHECK(peer.reply() == R"(["CLIENT", "SETINFO", "LIB-NAME", "holdfast"])");
  peer.reply();
  CHECK(peer.reply() == R"(["PING"])");  // the peer has not replied yet
  peer.send("-ERR unknown command\r\n-ERR unknown command\r\n-ERR unknown command\r\n+PONG\r\n");
  CHECK(text(inbox.take()) == "text 0 PONG");
}

TEST_CASE("names: with a login they leave with AUTH, before its reply") {
  Listener listener;
  Inbox<Reply> inbox;
  Address address{"127.0.0.1", listener.port()};
  address.client_name = "app";
  address.password = "secret";
  Rig rig(address);
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  Client peer = listener.accept();
  CHECK(peer.reply() == R"(["AUTH", "secret"])");
  CHECK(peer.reply() == R"(["CLIENT", "SETNAME", "app"])");
  peer.reply();
  peer.reply();
  peer.send("+OK\r\n");
  CHECK(peer.reply() == R"(["PING"])");
  peer.send("+OK\r\n-NOPERM no\r\n-NOPERM no\r\n+PONG\r\n");
  CHECK(text(inbox.take()) == "text 0 PONG");
}

TEST_CASE("names: the error of a server that accepts no client is the answer to the first request") {
  Listener listener;
  Inbox<Reply> inbox;
  Address address{"127.0.0.1", listener.port()};
  address.client_name = "app";
  Rig rig(address);
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  {
    Client peer = listener.accept();
    for (int i = 0; i < 4; ++i) peer.reply();
    peer.send("-ERR max number of clients reached\r\n");
  }
  CHECK(text(inbox.take()) == "error 0 ERR max number of clients reached");
}

}  // namespace holdfast::integration
