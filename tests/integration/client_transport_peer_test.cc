// The client's transport against servers that are silent or faulty, and against programs that are not Redis
// servers. The client survives all of their replies.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <memory>
#include <string>

#include "client/transport/backoff.h"
#include "client/transport/connection.h"
#include "client/transport/watcher.h"
#include "integration/client.h"
#include "integration/listener.h"
#include "integration/transport_rig.h"

namespace holdfast::integration {
namespace {

TEST_CASE("transport: a server that is silent for five seconds is lost, also while the client connects") {
  Inbox<Reply> inbox;
  const Server server;
  Rig rig(server);
  rig.send({"PING"});
  kill(server.pid(), SIGSTOP);
  Listener deaf;
  const Fd accepted_by_the_system = connect_tcp(deaf.port());  // the queue of the listener is full now
  Rig unheard(deaf.port());
  unheard.run([&] { unheard.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  CHECK(text(rig.send({"PING"})) == "lost 0 no answer in 5000 ms");
  CHECK(text(inbox.take()) == "lost 0 no connection in time");
  kill(server.pid(), SIGCONT);
  until("the server answers", [&] { return rig.send({"PING"}).kind == Kind::kText; });
}

TEST_CASE("transport: a request to a program that is not a Redis server is lost with a reason") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  rig.wait({"PING"}, inbox);
  listener.accept().send("SSH-2.0-OpenSSH\r\n");
  CHECK(text(inbox.take()) == "lost 0 protocol error, got \"S\" as reply type byte");
}

TEST_CASE("transport: a request is lost with a reason if its reply has more elements than fit in memory") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  rig.wait({"PING"}, inbox);
  Client peer = listener.accept();
  CHECK(peer.reply() == "[\"PING\"]");
  peer.send("*2147483647\r\n:1\r\n");
  CHECK(text(inbox.take()) == "lost 0 the reply has more elements than the limit");
  CHECK(peer.reply() == "(closed)");
}

TEST_CASE("transport: the requests of one iteration of the loop are sent at once") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  const auto ask = [&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); };
  rig.run(ask);
  Client peer = listener.accept();
  CHECK(peer.reply() == "[\"PING\"]");
  peer.send("+PONG\r\n");
  inbox.take();
  rig.run([&] {
    for (int i = 0; i < 100; ++i) ask();
  });
  for (int i = 0; i < 100; ++i) CHECK(peer.reply() == "[\"PING\"]");
  tcp_info info{};
  socklen_t size = sizeof info;
  REQUIRE(getsockopt(peer.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
  CHECK(info.tcpi_data_segs_in == 2);
}

TEST_CASE("transport: bytes that the server does not read at once are sent later, in order") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  // Larger than the buffers of the sockets, and read as bytes: to parse them takes seconds under ASan.
  const std::string large(size_t{12} << 20, 'x');
  rig.run([&] {
    for (const std::string& word : {large, std::string("small"), large})
      rig.link().send({"ECHO", word}, kLong, [&](const Reply& reply) { inbox.put(reply); });
  });
  Client peer = listener.accept();
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  const std::string first = frame({"ECHO", large});
  CHECK(peer.exchange("", first + frame({"ECHO", "small"}) + first + frame({"PING"})) == "");
  peer.send("+1\r\n+2\r\n+3\r\n+4\r\n");
  for (const std::string number : {"1", "2", "3", "4"}) CHECK(text(inbox.take()) == "text 0 " + number);
}

TEST_CASE("transport: the client disconnects from a server that does not read before memory is full") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  rig.run([&] { rig.link().send({"PING"}, kLong, [&](const Reply& reply) { inbox.put(reply); }); });
  Client peer = listener.accept();
  CHECK(peer.reply() == "[\"PING\"]");
  peer.send("+PONG\r\n");
  inbox.take();
  const std::string half(client::kMaxUnsentBytes / 2, 'x');
  rig.run([&] {
    for (int i = 0; i < 2; ++i)
      rig.link().send({"ECHO", half}, kLong, [&](const Reply& reply) { inbox.put(reply); });
  });
  CHECK(text(inbox.take()) == "lost 0 the server does not read the requests");
  CHECK(text(inbox.take()) == "lost 0 the server does not read the requests");
}

TEST_CASE("transport: the client disconnects from a server that sends a reply without a request") {
  Listener listener;
  Inbox<Reply> inbox;
  Rig rig(listener.port());
  for (const std::string unasked : {"+x\r\n", ":1\r\n", "$-1\r\n", "*2\r\n:1\r\n:2\r\n", "-ERR no\r\n"}) {
    rig.wait({"PING"}, inbox);
    Client peer = listener.accept();
    CHECK(peer.reply() == "[\"PING\"]");
    peer.send("+PONG\r\n" + unasked);
    CHECK(text(inbox.take()) == "text 0 PONG");
    CHECK(peer.reply() == "(closed)");
  }
}

TEST_CASE("transport: a subscriber disconnects after an unexpected message, and connects again") {
  Listener listener;
  Inbox<std::string> inbox;
  Rig rig(listener.port());
  rig.watch("c", inbox);
  const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
  for (const std::string odd :
       {"+OK\r\n", "$-1\r\n", ":1\r\n", "*0\r\n", "*-1\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        "*3\r\n:1\r\n:1\r\n:1\r\n", "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n$1\r\n0\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n+OK\r\n",
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n:1\r\n", "-ERR no\r\n"}) {
    Client peer = listener.accept();
    CHECK(peer.reply() == "[\"SUBSCRIBE\", \"c\"]");
    peer.send(confirmed + odd);
    CHECK(inbox.take() == "");
    CHECK(peer.reply() == "(closed)");
  }
}

TEST_CASE("transport: a silent subscription is checked, and made again if the server does not reply") {
  Listener listener;
  const Address address{"127.0.0.1", listener.port()};
  Inbox<std::string> inbox;
  Loop loop;
  std::unique_ptr<client::Watcher> watcher;
  run_on(loop, [&] {
    watcher = std::make_unique<client::Watcher>(loop, address, DurationMs{20}, DurationMs{200});
    watcher->watch("c", [&](const std::string& message) { inbox.put(message); });
  });
  const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
  Client first = listener.accept();
  for (int asked = 0; asked < 3; ++asked) {  // the first subscribes, the others only check the connection
    CHECK(first.reply() == "[\"SUBSCRIBE\", \"c\"]");
    first.send(confirmed);
  }
  CHECK(inbox.take() == "");
  CHECK(first.reply() == "[\"SUBSCRIBE\", \"c\"]");
  CHECK(first.reply() == "(closed)");  // because no reply came
  Client second = listener.accept();
  CHECK(second.reply() == "[\"SUBSCRIBE\", \"c\"]");
  second.send(confirmed + "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n");
  CHECK(inbox.take() == "");  // once per connection: the watch may have missed messages
  CHECK(inbox.take() == "m");
  run_on(loop, [&] { watcher.reset(); });
}

TEST_CASE("transport: the pause doubles from 10 ms to 250 ms, and starts at 10 ms again after a success") {
  client::Backoff backoff;
  CHECK(is_due(backoff.until(), TimeMs{0}));
  for (const int64_t pause_ms : {10, 20, 40, 80, 160, 250, 250}) {
    backoff.fail("why", TimeMs{5000});
    CHECK(backoff.until() == TimeMs{5000 + pause_ms});
  }
  CHECK(backoff.why() == "why");
  backoff.succeed();
  backoff.fail("why", TimeMs{9000});
  CHECK(backoff.until() == TimeMs{9010});
}

}  // namespace
}  // namespace holdfast::integration
