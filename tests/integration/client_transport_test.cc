// The client's transport against real servers: the order of replies, timeouts, servers that stop, crash and
// restart, and objects that are destroyed while requests are in flight.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>

#include "client/transport/pipeline.h"
#include "integration/client.h"
#include "integration/transport_rig.h"

namespace holdfast::integration {
namespace {

TEST_CASE("transport: the client distinguishes all kinds of replies") {
  const Server server;
  Rig rig(server);
  const Reply grant = rig.send({"LOCK", "k", "alice", "60000"});
  CHECK(grant.kind == Kind::kGrant);
  CHECK(grant.number > 0);
  CHECK(grant.text == "alice");
  CHECK(text(rig.send({"LOCK", "k", "bob", "60000"})) == "null 0 ");
  CHECK(text(rig.send({"GET", "none"})) == "null 0 ");
  CHECK(text(rig.send({"UNLOCK", "k", "bob"})) == "integer -1 ");
  CHECK(text(rig.send({"PING"})) == "text 0 PONG");
  CHECK(text(rig.send({"ECHO", std::string("a\0\r\n", 4)})) == "text 0 " + std::string("a\0\r\n", 4));
  CHECK(text(rig.send({"LOCK", "k", "bob", "soon"})) ==
        "error 0 ERR ttl must be an integer from 0 to 9007199254740991");
  CHECK(rig.send({"LOCKS", "INFO", "k"}).kind == Kind::kError);
}

TEST_CASE("transport: ask() returns replies of any shape") {
  const Server server;
  Rig rig(server);
  rig.send({"LOCK", "k", "alice", "60000"});
  const Value info = rig.ask({"LOCKS", "INFO", "k"});
  REQUIRE(info.kind == Value::Kind::kArray);
  CHECK(info.elements.at(0).text == "key");
  CHECK(info.elements.at(1).kind == Value::Kind::kBulk);
  const Value& holders = info.elements.at(9);
  REQUIRE(holders.kind == Value::Kind::kArray);
  CHECK(holders.elements.at(0).elements.at(1).text == "alice");
  CHECK(rig.ask({"LOCKS", "INFO", "none"}).kind == Value::Kind::kNull);
  CHECK(rig.ask({"PING"}).kind == Value::Kind::kStatus);
}

TEST_CASE("transport: a thousand requests at once get their replies in order") {
  const Server server;
  Inbox<Reply> inbox;
  Rig rig(server);
  rig.run([&] {
    for (int i = 0; i < 1000; ++i)
      rig.link().send({"INCR", "n"}, kLong, [&](const Reply& reply) { inbox.put(reply); });
  });
  for (int i = 1; i <= 1000; ++i) REQUIRE(inbox.take().number == i);
}

TEST_CASE("transport: a request beyond the limit of unanswered requests is lost at once, and no other is") {
  constexpr size_t kMost = 1000;
  const Server server;
  Inbox<Value> inbox;
  Rig rig(server);
  const Address address{"127.0.0.1", server.port()};
  std::unique_ptr<client::Pipeline> pipeline;
  rig.run([&] { pipeline = std::make_unique<client::Pipeline>(rig.loop(), address, kMost); });
  const std::shared_ptr<void> end(nullptr, [&](void*) { rig.run([&] { pipeline.reset(); }); });
  const auto add = [&] {
    pipeline->ask({"INCR", "n"}, kLong, [&](const Value& value) { inbox.put(value); });
  };
  rig.run(add);
  CHECK(inbox.take().integer == 1);
  kill(server.pid(), SIGSTOP);
  rig.run([&] {
    for (size_t i = 0; i <= kMost; ++i) add();
  });
  const Value lost = inbox.take();
  CHECK(lost.kind == Value::Kind::kLost);
  CHECK(lost.text == "1000 requests have no answer yet; this one was not sent");
  kill(server.pid(), SIGCONT);
  for (size_t i = 1; i <= kMost; ++i) REQUIRE(inbox.take().integer == static_cast<int64_t>(i + 1));
  rig.run(add);
  CHECK(inbox.take().integer == static_cast<int64_t>(kMost + 2));
}

TEST_CASE("transport: a reply that comes too late is not used for the next request") {
  const Server server;
  Inbox<Reply> inbox;
  Rig rig(server);
  rig.send({"PING"});
  kill(server.pid(), SIGSTOP);
  CHECK(text(rig.send({"ECHO", "late"}, DurationMs{20})) == "lost 0 no answer in 20 ms");
  rig.run([&] {
    rig.link().send({"ECHO", "later"}, DurationMs{1}, [&](const Reply& reply) { inbox.put(reply); });
    rig.link().send({"ECHO", "in time"}, kLong, [&](const Reply& reply) { inbox.put(reply); });
  });
  CHECK(text(inbox.take()) == "lost 0 no answer in 1 ms");
  kill(server.pid(), SIGCONT);
  CHECK(text(inbox.take()) == "text 0 in time");
  CHECK(text(rig.send({"ECHO", "next"})) == "text 0 next");
}

TEST_CASE("transport: the client reconnects to a server that was killed and restarted") {
  const int port = free_port();
  Inbox<Reply> inbox;
  std::unique_ptr<Rig> rig;
  {
    Server server = Server::on_port(port);
    rig = std::make_unique<Rig>(server);
    rig->send({"PING"});
    rig->wait({"LOCK", "k", "a", "60000", "SESSION"}, inbox);
    CHECK(inbox.take().kind == Kind::kGrant);
    rig->wait({"LOCK", "k", "b", "60000", "WAIT", "0"}, inbox);
    CHECK(server.stop(SIGKILL) == 128 + SIGKILL);
  }
  CHECK(inbox.take().kind == Kind::kLost);
  until("the client notices the crash",
        [&] { return text(rig->send({"PING"})) == "lost 0 connection refused"; });
  const Server again = Server::on_port(port);
  until("the server answers", [&] { return rig->send({"PING"}).kind == Kind::kText; });
}

TEST_CASE("transport: without a listening server requests are lost at once, but not within send()") {
  const int port = free_port();
  Inbox<Reply> inbox;
  Rig rig(port);
  for (int i = 0; i < 20; ++i) {
    rig.run([&] {
      auto inside = std::make_shared<bool>(true);
      rig.link().send({"PING"}, kLong, [&inbox, inside](const Reply& reply) {
        CHECK(!*inside);
        inbox.put(reply);
      });
      *inside = false;
    });
    CHECK(text(inbox.take()) == "lost 0 connection refused");
  }
  rig.wait({"LOCK", "k", "a", "1", "WAIT", "0"}, inbox);
  CHECK(text(inbox.take()) == "lost 0 connection refused");
}

TEST_CASE("transport: the client looks up a name, and tries each of its addresses") {
  const Server server;  // at 127.0.0.1 only, while localhost is ::1 too
  Rig rig(server.port(), "localhost");
  CHECK(text(rig.send({"PING"})) == "text 0 PONG");
}

TEST_CASE("transport: a request to an unknown name is lost with a reason") {
  Rig rig(7379, "no such host");
  const Reply reply = rig.send({"PING"});
  CHECK(reply.kind == Kind::kLost);
  CHECK(reply.text != "");
}

TEST_CASE("transport: a waiter gets the lock in its turn, and its session lasts until end()") {
  const Server server;
  Inbox<Reply> inbox;
  Rig rig(server);
  Client other(server);
  rig.send({"LOCK", "k", "alice", "60000"});
  const Link::Wait wait = rig.wait({"LOCK", "k", "bob", "60000", "WAIT", "0", "SESSION"}, inbox);
  until_waiting(other, 1);
  CHECK(text(rig.send({"UNLOCK", "k", "alice"})) == "integer 1 ");
  CHECK(inbox.take().kind == Kind::kGrant);
  CHECK(other.ask("GET k") == "\"bob\"");
  rig.run([&] { rig.link().end(wait); });
  until("the session's hold has ended", [&] { return other.ask("EXISTS k") == "0"; });
}

TEST_CASE("transport: an ended wait leaves the server's queue, and its callback is not called") {
  const Server server;
  Inbox<Reply> inbox;
  Rig rig(server);
  Client other(server);
  rig.send({"LOCK", "k", "alice", "60000"});
  const Link::Wait wait = rig.wait({"LOCK", "k", "bob", "60000", "WAIT", "0", "SESSION"}, inbox);
  until_waiting(other, 1);
  rig.run([&] {
    rig.link().end(wait);
    rig.link().end(wait);
    rig.link().end(rig.link().wait({"PING"}, [&](const Reply& reply) { inbox.put(reply); }));
  });
  until_waiting(other, 0);
  rig.send({"UNLOCK", "k", "alice"});
  CHECK(inbox.empty());
}

TEST_CASE("transport: a watch receives the message of a release") {
  const Server server;
  Inbox<std::string> inbox;
  Inbox<std::string> other;
  Rig rig(server);
  const Link::Watch watch = rig.watch("__lock__:k", inbox);
  rig.watch("__lock__:other", other);
  CHECK(inbox.take() == "");
  CHECK(other.take() == "");
  rig.send({"LOCK", "k", "alice", "60000"});
  rig.send({"UNLOCK", "k", "alice"});
  CHECK(inbox.take().starts_with("granted alice "));
  CHECK(inbox.take() == "released alice");
  rig.run([&] { rig.link().unwatch(watch); });
  rig.send({"PUBLISH", "__lock__:k", "too late"});
  rig.send({"PUBLISH", "__lock__:other", "heard"});
  CHECK(other.take() == "heard");
  CHECK(inbox.empty());
}

TEST_CASE("transport: a second watch of a channel gets a start message, and the first watch does not") {
  const Server server;
  Inbox<std::string> first;
  Inbox<std::string> second;
  Rig rig(server);
  const Link::Watch watch = rig.watch("c", first);
  CHECK(first.take() == "");
  rig.watch("c", second);
  CHECK(second.take() == "");
  rig.send({"PUBLISH", "c", "both"});
  CHECK(first.take() == "both");
  CHECK(second.take() == "both");
  rig.run([&] { rig.link().unwatch(watch); });
  rig.send({"PUBLISH", "c", "one"});
  CHECK(second.take() == "one");
  CHECK(first.empty());
}

TEST_CASE("transport: a watch may end and start again before the server confirms") {
  const Server server;
  Inbox<std::string> gone;
  Inbox<std::string> inbox;
  Rig rig(server);
  Client other(server);
  const auto put = [](Inbox<std::string>& into) {
    return [&into](const std::string& message) { into.put(message); };
  };
  rig.watch("other", inbox);
  CHECK(inbox.take() == "");
  rig.run([&] {
    for (int i = 0; i < 10; ++i) rig.link().unwatch(rig.link().watch("c", put(gone)));
    rig.link().watch("c", put(inbox));
  });
  CHECK(inbox.take() == "");
  rig.send({"PUBLISH", "c", "heard"});
  CHECK(inbox.take() == "heard");
  CHECK(gone.empty());
}

TEST_CASE("transport: the connection closes with the last watch, and the next watch opens it again") {
  const Server server;
  Inbox<std::string> inbox;
  Rig rig(server);
  Client other(server);
  for (int round = 0; round < 3; ++round) {
    const Link::Watch watch = rig.watch("c", inbox);
    CHECK(inbox.take() == "");
    CHECK(info(other, "clients", "connected_clients") == 2);
    rig.run([&] { rig.link().unwatch(watch); });
    until("the connection has closed", [&] { return info(other, "clients", "connected_clients") == 1; });
  }
}

TEST_CASE("transport: a watch survives the server's restart, and is notified of possible missed messages") {
  const int port = free_port();
  Inbox<std::string> inbox;
  std::unique_ptr<Rig> rig;
  {
    const Server server = Server::on_port(port);
    rig = std::make_unique<Rig>(server);
    rig->watch("c", inbox);
    CHECK(inbox.take() == "");
  }
  const Server again = Server::on_port(port);
  CHECK(inbox.take() == "");
  Client(again).ask("PUBLISH c hello");
  CHECK(inbox.take() == "hello");
}

TEST_CASE("transport: a link may be destroyed by each of its callbacks") {
  const Server server;
  Inbox<int> inbox;
  std::atomic<int> others = 0;
  const auto note = [&](const Reply& /*reply*/) { ++others; };
  Rig by_reply(server);
  by_reply.run([&] {
    by_reply.link().send({"PING"}, kLong, [&](const Reply& /*reply*/) {
      by_reply.drop_link();
      inbox.put(1);
    });
    by_reply.link().send({"PING"}, kLong, note);
  });
  CHECK(inbox.take() == 1);
  Rig by_wait(server);
  by_wait.run([&] {
    by_wait.link().wait({"PING"}, [&](const Reply& /*reply*/) {
      by_wait.drop_link();
      inbox.put(2);
    });
  });
  CHECK(inbox.take() == 2);
  Rig by_watch(server);
  by_watch.run([&] {
    by_watch.link().watch("c", [&](const std::string& /*message*/) {
      by_watch.drop_link();
      inbox.put(3);
    });
    by_watch.link().watch("c", [&](const std::string& /*message*/) { ++others; });
  });
  CHECK(inbox.take() == 3);
  CHECK(others == 0);
}

TEST_CASE("transport: a link may be destroyed by the first of several losses") {
  const int port = free_port();
  Inbox<int> inbox;
  std::atomic<int> others = 0;
  Rig rig(port);
  rig.run([&] {
    rig.link().send({"PING"}, kLong, [&](const Reply& /*reply*/) {
      rig.drop_link();
      inbox.put(1);
    });
    rig.link().send({"PING"}, kLong, [&](const Reply& /*reply*/) { ++others; });
  });
  CHECK(inbox.take() == 1);
  rig.run([] {});
  CHECK(others == 0);
}

TEST_CASE("transport: a loop ends while requests are in flight, and calls no callback") {
  const Server server;
  std::atomic<int> told = 0;
  const auto note = [&](const Reply& /*reply*/) { ++told; };
  const auto hear = [&](const std::string& /*message*/) { ++told; };
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    Rig fresh(server.port(), host);
    fresh.run([&] {
      fresh.link().send({"PING"}, kLong, note);
      fresh.link().wait({"PING"}, note);
      fresh.link().watch("c", hear);
      fresh.drop_link();
    });
    Rig connected(server.port(), host);
    connected.send({"LOCK", "k", "a", "60000"});
    connected.run([&] {
      connected.link().wait({"LOCK", "k", "b", "60000", "WAIT", "0"}, note);
      connected.link().send({"PING"}, kLong, note);
      connected.drop_link();
    });
  }
  CHECK(told == 0);
}

TEST_CASE("transport: a program started by this one does not inherit connections") {
  const Server server;
  Rig rig(server);
  rig.send({"PING"});
  int ours = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != server.port()) continue;
    ++ours;
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(ours == 1);
}

TEST_CASE("transport: an address as text") {
  CHECK(Address{"db.example", 1}.text() == "db.example:1");
  CHECK(Address{"::1", 7379}.text() == "[::1]:7379");
}

}  // namespace
}  // namespace holdfast::integration
