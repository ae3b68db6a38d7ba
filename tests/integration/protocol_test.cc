// The protocol over real sockets: requests split at any byte, many requests at once, and bytes that are not
// requests.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "client.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

// The same requests twice: framed by a client, and typed by a person. They contain a LOCK that must wait.
const std::string kFramed = frame({"ECHO", "one"}) + frame({"LOCK", "k", "bob", "60000", "WAIT", "0"}) +
                            frame({"ECHO", "two"}) + frame({"UNLOCK", "k", "bob"}) + frame({"ECHO", ""});
const std::string kTyped =
    "ECHO one\r\nLOCK k bob 60000 WAIT 0\r\nECHO \"two\"\nUNLOCK k bob\r\nECHO ''\r\n";

void check_replies(Client& client) {
  CHECK(client.reply() == "\"one\"");
  CHECK(token_of(client.reply(), "bob") > 0);
  CHECK(client.reply() == "\"two\"");
  CHECK(client.reply() == "1");
  CHECK(client.reply() == "\"\"");
}

// Sends the bytes in two parts, split at `at`. Another client gets a reply between the two, so that the
// server has read the first part alone.
void send_in_two(Client& client, Client& other, const std::string& bytes, size_t at) {
  client.send(bytes.substr(0, at));
  REQUIRE(other.ask("PING") == "+PONG");
  client.send(bytes.substr(at));
}

std::string numbered_echoes(size_t count, std::string& expected) {
  std::string input;
  for (size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    input += i % 2 == 0 ? frame({"ECHO", n}) : "ECHO " + n + "\r\n";
    expected += "$" + std::to_string(n.size()) + "\r\n" + n + "\r\n";
  }
  return input;
}

TEST_CASE("a pipeline split at any byte gets the same replies, a LOCK that waits among them") {
  const Server server;
  Client client(server);
  Client other(server);
  for (const std::string& bytes : {kFramed, kTyped}) {
    for (size_t at = 1; at < bytes.size(); ++at) {
      CAPTURE(at);
      REQUIRE(token_of(other.ask("LOCK k alice 60000"), "alice") > 0);
      send_in_two(client, other, bytes, at);
      REQUIRE(client.reply() == "\"one\"");
      until_blocked(other, 1);
      REQUIRE(other.ask("UNLOCK k alice") == "1");
      REQUIRE(token_of(client.reply(), "bob") > 0);
      REQUIRE(client.reply() == "\"two\"");
      REQUIRE(client.reply() == "1");
      REQUIRE(client.reply() == "\"\"");
    }
  }
}

TEST_CASE("requests of one pipeline get the replies that they get one by one") {
  const std::vector<std::string> requests = {
      frame({"SET", "a", "1"}),
      frame({"GET", "a"}),
      frame({"SELECT", "1"}),
      frame({"GET", "a"}),
      frame({"SET", "a", "2"}),
      frame({"SELECT", "0"}),
      frame({"MULTI"}),
      frame({"APPEND", "a", "x"}),
      frame({"DEL", "a", "b"}),
      frame({"EXEC"}),
      frame({"GET", "a"}),
      frame({"SWAPDB", "0", "1"}),
      frame({"GET", "a"}),
      frame({"EVAL", "return redis.call('del', KEYS[1])", "1", "a"}),
      frame({"GET", "a"}),
      frame({"MSET", "a", "1", "b", "2"}),
      frame({"DEL", "a", "b"}),
      frame({"UNLOCK", "a", "me"}),
      frame({"GET"}),
      frame({"NOSUCH", "a"}),
      frame({"CONFIG", "SET", "proto-max-bulk-len", "1048576"}),
      frame({"SET", "a", std::string(5000, 'v')}),
      frame({"STRLEN", "a"}),
      frame({"FLUSHALL"}),
      frame({"EXISTS", "a"}),
      frame({"CLIENT", "REPLY", "SKIP"}) + frame({"SET", "a", "3"}) + frame({"GET", "a"}),
      frame({"CLIENT", "PAUSE", "1"}),
      frame({"INCR", "a"}),
      frame({"RESET"}),
      frame({"GET", "a"})};
  const Server server;
  const Server other;
  Client one_by_one(server);
  Client pipelined(other);
  std::string all;
  for (const std::string& request : requests) all += request;
  pipelined.send(all);
  for (const std::string& request : requests) {
    CAPTURE(request);
    one_by_one.send(request);
    CHECK(pipelined.reply() == one_by_one.reply());
  }
}

TEST_CASE("a pipeline that comes byte by byte gets its replies") {
  const Server server;
  Client client(server);
  for (const std::string& bytes : {kFramed, kTyped}) {
    for (const char byte : bytes) client.send({&byte, 1});
    check_replies(client);
  }
}

TEST_CASE("a million pipelined commands get a million replies in order") {
  const Server server;
  Client client(server);
  std::string expected;
  const std::string input = numbered_echoes(1000000, expected);
  CHECK(client.exchange(input, expected) == "");
  CHECK(client.ask("PING") == "+PONG");
}

TEST_CASE("200,000 commands may be written before the first reply is read") {
  const Server server;
  Client client(server);
  Client other(server);
  std::string expected;
  client.send(numbered_echoes(200000, expected));
  CHECK(other.ask("PING") == "+PONG");
  CHECK(client.exchange("", expected) == "");
}

TEST_CASE("a client that shuts down sending still gets all replies, and then the end") {
  const Server server;
  Client client(server);
  std::string expected;
  client.send(numbered_echoes(200000, expected));
  client.half_close();
  CHECK(client.read_to_end() == expected);
}

TEST_CASE(
    "a client that shuts down sending still gets replies to requests in slices, and to those after them") {
  const Server server;
  std::string names;
  for (int i = 0; i < 1000; ++i) names += " n" + std::to_string(i);
  Client watcher(server);
  watcher.send("WATCH" + names + "\r\nMULTI\r\nPING\r\nEXEC\r\nPING\r\n");
  watcher.half_close();
  CHECK(watcher.read_to_end() == "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n+PONG\r\n");
  Client hearer(server);
  hearer.send("SUBSCRIBE" + names + "\r\n");
  hearer.half_close();
  CHECK(hearer.read_to_end().ends_with("$4\r\nn999\r\n:1000\r\n"));
}

TEST_CASE("a waiter that shuts down sending leaves the queue") {
  const Server server;
  Client client(server);
  Client other(server);
  REQUIRE(token_of(other.ask("LOCK k alice 0"), "alice") > 0);
  client.send("PING\r\nLOCK k bob 0 WAIT 0\r\n");
  client.half_close();
  CHECK(client.read_to_end() == "+PONG\r\n");
  until_waiting(other, 0);
}

TEST_CASE("one large pipeline does not block the replies to another client") {
  const Server server;
  Client greedy(server);
  Client other(server);
  std::string expected;
  greedy.send(numbered_echoes(100000, expected));
  for (int i = 0; i < 100; ++i) REQUIRE(other.ask("PING") == "+PONG");
  CHECK(greedy.exchange("", expected) == "");
}

TEST_CASE("an argument of 64 MB arrives and comes back") {
  const Server server;
  Client client(server);
  const std::string value(size_t{64} << 20, 'x');
  CHECK(client.exchange(frame({"SET", "k", value}), "+OK\r\n") == "");
  CHECK(client.exchange(frame({"GET", "k"}), "$67108864\r\n" + value + "\r\n") == "");
}

TEST_CASE("HELLO 3 in the middle of a pipeline changes only the replies after it") {
  const Server server;
  Client client(server);
  client.send("GET none\r\nHELLO 3\r\nGET none\r\nHELLO 2\r\nGET none\r\n");
  CHECK(client.reply() == "nil");
  CHECK(client.reply().starts_with("{\"server\": "));
  CHECK(client.reply() == "null");
  CHECK(client.reply().starts_with("[\"server\", "));
  CHECK(client.reply() == "nil");
}

TEST_CASE("a broken frame gets an error and ends its connection, after the replies to earlier requests") {
  const Server server;
  for (const char* broken :
       {"*x\r\n", "*1\r\n+PING\r\n", "*1\r\n$-1\r\n", "*2147483648\r\n", "*1\r\n$99999999999\r\n",
        "*1\r\n$ 4\r\nPING\r\n", "ECHO \"a\r\n", "*3\r\n$4\r\nPING\r\n*1\r\n"}) {
    CAPTURE(broken);
    Client client(server);
    client.send("PING\r\n" + std::string(broken) + "PING\r\n");
    CHECK(client.reply() == "+PONG");
    CHECK(client.reply().starts_with("-ERR Protocol error: "));
    CHECK(client.reply() == "(closed)");
  }
}

TEST_CASE("QUIT gets a reply, and requests pipelined after it do not") {
  const Server server;
  Client client(server);
  client.send("PING\r\nQUIT\r\nPING\r\n");
  CHECK(client.read_to_end() == "+PONG\r\n+OK\r\n");
}

// Requests whose replies do not fit into the sockets' buffers.
std::string ask_for_large_replies(Client& client) {
  REQUIRE(client.ask("SET large " + std::string(60000, 'x')) == "+OK");
  std::string requests;
  for (int i = 0; i < 500; ++i) requests += frame({"GET", "large"});
  return requests;
}

TEST_CASE("QUIT after large replies: all replies arrive before the end") {
  const Server server;
  Client other(server);
  Client client(server);
  client.send(ask_for_large_replies(client) + "QUIT\r\n");
  until("QUIT has been read", [&] { return info(other, "stats", "total_commands_processed") > 500; });
  const std::string heard = client.read_to_end();
  CHECK(heard.size() == 500 * 60010 + 5);
  CHECK(heard.ends_with("+OK\r\n"));
}

TEST_CASE("a broken frame after large replies: all replies arrive, and its error") {
  const Server server;
  Client other(server);
  Client client(server);
  client.send(ask_for_large_replies(client) + "*x\r\n");
  until("the server has read all requests",
        [&] { return info(other, "stats", "total_commands_processed") > 500; });
  CHECK(client.read_to_end().ends_with("-ERR Protocol error: invalid multibulk length\r\n"));
}

TEST_CASE("a client that resets its connection during its replies does not disturb other clients") {
  const Server server;
  Client other(server);
  for (int round = 0; round < 20; ++round) {
    Client client(server);
    client.send(ask_for_large_replies(client));
    REQUIRE(client.reply().size() > 60000);
    client.reset();
    REQUIRE(other.ask("PING") == "+PONG");
  }
  until("the other clients are disconnected",
        [&] { return info(other, "clients", "connected_clients") == 1; });
}

// Half of the bytes are those of frames, so that the parser gets beyond the first byte.
std::string random_bytes(std::mt19937_64& random) {
  static constexpr std::string_view kLikely = "*$0123456789\r\n\r\n-+\"'\\ LOCKPINGSET";
  std::string bytes;
  for (size_t left = random() % 2000; left > 0; --left) {
    const uint64_t dice = random();
    bytes += dice % 2 == 0 ? kLikely[(dice >> 8) % kLikely.size()] : static_cast<char>(dice >> 8);
  }
  return bytes;
}

TEST_CASE("random bytes affect only their own connection") {
  const Server server;
  Client bystander(server);
  REQUIRE(token_of(bystander.ask("LOCK mine me 0 SESSION"), "me") > 0);
  std::mt19937_64 random(20260731);  // fixed, so that a failure repeats
  for (int stream = 0; stream < 1000; ++stream) {
    CAPTURE(stream);
    Client client(server);
    if (client.try_send(random_bytes(random))) client.half_close();
    client.read_to_end();
    REQUIRE(bystander.ask("PING") == "+PONG");
  }
  until("only one client is left", [&] { return info(bystander, "clients", "connected_clients") == 1; });
  CHECK(bystander.ask("GET mine") == "\"me\"");
}

TEST_CASE("frames with random bytes as arguments get their replies one by one") {
  const Server server;
  Client client(server);
  std::mt19937_64 random(20260801);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = random_bytes(random);
    client.send(frame({"ECHO", bytes}));
    const std::string expected = "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
    REQUIRE(client.exchange("", expected) == "");
  }
}

TEST_CASE("a client may disconnect at any byte of its requests, and leaves no connection behind") {
  const Server server;
  Client other(server);
  for (size_t at = 0; at <= kFramed.size(); ++at) {
    Client closes(server);
    closes.send(kFramed.substr(0, at));
    Client resets(server);
    resets.send(kFramed.substr(0, at));
    resets.reset();
  }
  until("the other clients are disconnected",
        [&] { return info(other, "clients", "connected_clients") == 1; });
  CHECK(token_of(other.ask("LOCK k2 me 0"), "me") > 0);
}

}  // namespace
}  // namespace holdfast::integration
