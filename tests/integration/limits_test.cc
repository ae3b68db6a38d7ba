// Every limit by its option, over real sockets: below, at and above it. A client above a limit does not
// disturb other clients.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

std::string id_of(Client& client) { return client.ask("CLIENT ID"); }

bool lists(Client& client, const std::string& id, const std::string& field) {
  return client.ask("CLIENT LIST ID " + id).find(" " + field + " ") != std::string::npos;
}

// A holder of k, and `waiting` waiters for it.
struct Queue {
  Queue(const Server& server, size_t waiting) : holder(server) {
    REQUIRE(token_of(holder.ask("LOCK k alice 0"), "alice") > 0);
    for (size_t i = 0; i < waiting; ++i) {
      waiters.emplace_back(server).send("LOCK k w" + std::to_string(i) + " 0 WAIT 0\r\n");
      until_blocked(holder, static_cast<int64_t>(i) + 1);
    }
  }
  Client holder;
  std::vector<Client> waiters;
};

TEST_CASE(
    "maxclients: a client above the limit gets an error; after a disconnect the next client is served") {
  const Server server({"--maxclients", "5"});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<Client>(server));
    CHECK(clients.back()->ask("PING") == "+PONG");
  }
  for (int i = 0; i < 3; ++i) {
    Client refused(server);
    CHECK(refused.reply() == "-ERR max number of clients reached");
    CHECK(refused.reply() == "(closed)");
  }
  for (const auto& client : clients) CHECK(client->ask("PING") == "+PONG");
  CHECK(info(*clients[0], "stats", "rejected_connections") == 3);
  clients.pop_back();
  until("room for one", [&] { return Client(server).ask("PING") == "+PONG"; });
}

TEST_CASE("proto-max-bulk-len: an argument below, at and above the limit") {
  const Server server({"--proto-max-bulk-len", "1mb"});
  for (const size_t size : {1048575U, 1048576U}) {
    Client client(server);
    client.send(frame({"SET", "k", std::string(size, 'x')}));
    CHECK(client.reply() == "+OK");
  }
  Client client(server);
  client.send(frame({"SET", "k", std::string(1048577, 'x')}));
  CHECK(client.reply() == "-ERR Protocol error: invalid bulk length");
  CHECK(client.reply() == "(closed)");
}

TEST_CASE("max-arguments: a command below, at and above the limit") {
  const Server server({"--max-arguments", "4"});
  Client client(server);
  client.send(frame({"DEL", "a", "b"}) + frame({"DEL", "a", "b", "c"}) +
              frame({"DEL", "a", "b", "c", "d"}));
  CHECK(client.reply() == "0");
  CHECK(client.reply() == "0");
  CHECK(client.reply() == "-ERR Protocol error: invalid multibulk length");
  CHECK(client.reply() == "(closed)");
}

TEST_CASE("max-inline-size: a line below, at and above the limit") {
  const Server server({"--max-inline-size", "100"});
  Client client(server);
  CHECK(client.ask("ECHO " + std::string(93, 'x')) == "\"" + std::string(93, 'x') + "\"");
  CHECK(client.ask("ECHO " + std::string(94, 'x')) == "\"" + std::string(94, 'x') + "\"");
  CHECK(client.ask("ECHO " + std::string(95, 'x')) == "-ERR Protocol error: too big inline request");
  CHECK(client.reply() == "(closed)");
}

TEST_CASE("max-inline-size: a line without an end is rejected at the limit") {
  const Server server({"--max-inline-size", "100"});
  Client client(server);
  client.send(std::string(101, 'x'));
  CHECK(client.reply() == "-ERR Protocol error: too big inline request");
  CHECK(client.reply() == "(closed)");
}

TEST_CASE(
    "client-query-buffer-limit: half a request closes its client above the limit, not at or below it") {
  const Server server({"--client-query-buffer-limit", "1mb"});
  Client other(server);
  Client client(server);
  const std::string id = id_of(client);
  const std::string head = "*2\r\n$4\r\nECHO\r\n$2000000\r\n";
  client.send(head + std::string(1048575 - head.size(), 'x'));
  until("1,048,575 bytes are held", [&] { return lists(other, id, "qbuf=1048575"); });
  client.send("x");
  until("1,048,576 bytes are held", [&] { return lists(other, id, "qbuf=1048576"); });
  client.send("x");
  CHECK(client.reply() == "(closed)");
  CHECK(other.ask("PING") == "+PONG");
}

TEST_CASE("client-query-buffer-limit: commands after a waiting LOCK count") {
  const Server server({"--client-query-buffer-limit", "1mb"});
  Queue queue(server, 1);
  Client& waiter = queue.waiters[0];
  waiter.try_send(std::string(1048576, '\n'));
  until("1,048,576 bytes are held", [&] { return lists(queue.holder, "2", "qbuf=1048576"); });
  until_waiting(queue.holder, 1);
  waiter.try_send("\n");
  CHECK(waiter.reply() == "(closed)");
  until_waiting(queue.holder, 0);
}

TEST_CASE("client-output-buffer-limit: a client that reads too slowly is closed, and no other client is") {
  const Server server({"--client-output-buffer-limit", "1mb"});
  Client slow(server);
  Client other(server);
  REQUIRE(other.ask("SET k " + std::string(50000, 'x')) == "+OK");
  // More replies than fit into the sockets' buffers and the limit.
  const std::string request = frame({"GET", "k"});
  size_t asked = 0;
  while (asked < 2000 && slow.try_send(request)) {
    ++asked;
    REQUIRE(other.ask("PING") == "+PONG");
  }
  until("the slow client is disconnected",
        [&] { return info(other, "clients", "connected_clients") == 1; });
  CHECK(slow.read_to_end().size() < 2000U * 50000U);
  CHECK(server.log().wait_for("client-output-buffer-limit"));
}

TEST_CASE("client-output-buffer-limit: a client need not read while its replies are below the limit") {
  const Server server({"--client-output-buffer-limit", "1mb"});
  Client slow(server);
  std::string expected;
  std::string requests;
  const std::string argument(1000, 'x');
  for (int i = 0; i < 1000; ++i) {
    requests += frame({"ECHO", argument});
    expected += "$1000\r\n" + argument + "\r\n";
  }
  slow.send(requests);
  Client other(server);
  for (int i = 0; i < 100; ++i) REQUIRE(other.ask("PING") == "+PONG");
  CHECK(slow.exchange("", expected) == "");
}

TEST_CASE("max-waiters: one more waiter is rejected, and may wait after another has disconnected") {
  const Server server({"--max-waiters", "3"});
  Queue queue(server, 3);
  Client one_more(server);
  CHECK(one_more.ask("LOCK k late 0 WAIT 0") == "-ERR too many waiters, see max-waiters");
  CHECK(token_of(one_more.ask("LOCK free late 0 WAIT 0"), "late") > 0);
  queue.waiters[1].reset();
  until_waiting(queue.holder, 2);
  one_more.send("LOCK k late 0 WAIT 0\r\n");
  until_waiting(queue.holder, 3);
}

TEST_CASE("max-waiters-per-key: one more waiter is rejected, but not for another key") {
  const Server server({"--max-waiters-per-key", "3"});
  Queue queue(server, 3);
  REQUIRE(token_of(queue.holder.ask("LOCK k2 alice 0"), "alice") > 0);
  Client one_more(server);
  CHECK(one_more.ask("LOCK k late 0 WAIT 0") ==
        "-ERR too many waiters for this key, see max-waiters-per-key");
  one_more.send("LOCK k2 late 0 WAIT 0\r\n");
  until_waiting(queue.holder, 4);
}

TEST_CASE("max-owner-size: an owner below, at and above the limit, by default and as set") {
  for (const size_t limit : {size_t{512}, size_t{20}}) {
    CAPTURE(limit);
    const Server server(limit == 512 ? std::vector<std::string>{}
                                     : std::vector<std::string>{"--max-owner-size", std::to_string(limit)});
    Client client(server);
    for (const size_t size : {limit - 1, limit}) {
      const std::string owner(size, 'o');
      CHECK(token_of(client.ask("LOCK k " + owner + " 0"), owner) > 0);
      CHECK(client.ask("UNLOCK k " + owner) == "1");
    }
    const std::string expected = "-ERR owner must be 1 to " + std::to_string(limit) + " bytes";
    CHECK(client.ask("LOCK k " + std::string(limit + 1, 'o') + " 0") == expected);
    CHECK(client.ask("LOCK k '' 0") == expected);
  }
}

TEST_CASE("maxmemory: requests that need memory are rejected; reads and releases work, and free memory") {
  const Server server({"--maxmemory", "64mb"});
  Client client(server);
  REQUIRE(token_of(client.ask("LOCK mine me 0"), "me") > 0);
  const std::string oom = "-OOM command not allowed when used memory > 'maxmemory'.";
  const std::string value(100000, 'v');
  const auto fill = [&](const std::string& name, const std::string& with) {
    for (int stored = 0; stored < 5000; ++stored) {
      client.send(frame({"SET", name + std::to_string(stored), with}));
      if (const std::string reply = client.reply(); reply != "+OK") {
        CHECK(reply == oom);
        return stored;
      }
    }
    return -1;
  };
  const int stored = fill("key:", value);
  REQUIRE(stored > 0);
  // The memory of a request itself counts, so that small requests still fit after a large one was rejected.
  REQUIRE(fill("small:", "v") >= 0);
  CHECK(client.ask("LOCK other me 0") == oom);
  CHECK(client.ask("LOCK mine you 0 WAIT 0") == oom);
  CHECK(client.ask("GET key:0") == "\"" + value + "\"");
  CHECK(client.ask("RENEW mine me 1000") == "1");
  CHECK(client.ask("UNLOCK mine me") == "1");
  for (int i = 0; i < stored; ++i) REQUIRE(client.ask("DEL key:" + std::to_string(i)) == "1");
  CHECK(token_of(client.ask("LOCK other me 0"), "me") > 0);
}

TEST_CASE(
    "more connections than open files: the server survives, and serves new clients after disconnects") {
  const Server server({"--maxclients", "1000"});
  Client first(server);
  REQUIRE(first.ask("PING") == "+PONG");
  const rlimit few{40, 40};
  REQUIRE(prlimit(server.pid(), RLIMIT_NOFILE, &few, nullptr) == 0);
  std::vector<Client> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server);
  size_t served = 0;
  for (Client& client : clients) {
    const std::string reply = client.ask("PING");
    served += reply == "+PONG" ? 1 : 0;
    CHECK((reply == "+PONG" || reply == "(closed)"));
  }
  CHECK(served > 0);
  CHECK(served < 40);
  CHECK(first.ask("PING") == "+PONG");
  clients.clear();
  until("a new client is served again", [&] { return Client(server).ask("PING") == "+PONG"; });
}

TEST_CASE("maxclients is lowered to what the system allows, with a warning") {
  Launch launch{{"--maxclients", "1000"}};
  launch.max_files = 48;
  launch.weak = true;
  const Server server(launch);
  CHECK(server.log().wait_for("maxclients is 16 instead of 1000"));
  std::vector<Client> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back(server);
    CHECK(clients.back().ask("PING") == "+PONG");
  }
  Client refused(server);
  CHECK(refused.reply() == "-ERR max number of clients reached");
}

}  // namespace
}  // namespace holdfast::integration
