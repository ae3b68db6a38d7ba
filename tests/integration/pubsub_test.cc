// Channels, client tracking and CLIENT PAUSE on the real server: slow subscribers, and the order of
// messages.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "integration/client.h"
#include "integration/server_harness.h"

namespace holdfast::integration {
namespace {

// Enough to fill the sockets' buffers many times over.
const std::string kMessage(100000, 'm');

TEST_CASE("a slow subscriber is disconnected at its own limit, and other clients are not") {
  const Server server({"--client-output-buffer-limit-pubsub", "1mb"});
  Client slow(server);
  Client quick(server);
  Client publisher(server);
  REQUIRE(slow.ask("SUBSCRIBE news") == "[\"subscribe\", \"news\", 1]");
  REQUIRE(quick.ask("SUBSCRIBE news") == "[\"subscribe\", \"news\", 1]");
  std::string heard;
  int published = 0;
  std::string receivers = "2";
  for (; receivers == "2" && published < 2000; ++published) {
    publisher.send(frame({"PUBLISH", "news", kMessage}));
    receivers = publisher.reply();
    CHECK(quick.reply() == "[\"message\", \"news\", \"" + kMessage + "\"]");
  }
  CHECK(receivers == "1");
  CHECK(published > 5);
  CHECK(server.log().wait_for("client-output-buffer-limit"));
  CHECK(quick.ask("PING") == "[\"pong\", \"\"]");
}

TEST_CASE("the limit of subscribers does not apply to other clients: their large replies arrive") {
  const Server server({"--client-output-buffer-limit-pubsub", "64kb"});
  Client client(server);
  client.send(frame({"SET", "k", kMessage}));
  REQUIRE(client.reply() == "+OK");
  CHECK(client.ask("GET k") == "\"" + kMessage + "\"");
}

TEST_CASE("a thousand messages to a hundred subscribers: each gets all of them in order") {
  const Server server;
  Client publisher(server);
  std::vector<Client> subscribers;
  for (int i = 0; i < 100; ++i) {
    subscribers.emplace_back(server);
    REQUIRE(subscribers.back().ask("SUBSCRIBE c") == "[\"subscribe\", \"c\", 1]");
  }
  std::string input;
  std::string counts;
  std::string messages;
  for (int i = 0; i < 1000; ++i) {
    input += frame({"PUBLISH", "c", std::to_string(i)});
    counts += ":100\r\n";
    messages += frame({"message", "c", std::to_string(i)});
  }
  CHECK(publisher.exchange(input, counts) == "");
  for (Client& subscriber : subscribers) CHECK(subscriber.exchange("", messages) == "");
}

TEST_CASE(
    "tracking: the invalidation of an expired key is sent at its expiry, without any request for the key") {
  const Server server;
  Client cache(server);
  Client other(server);
  REQUIRE(cache.ask("HELLO 3").find("\"proto\": 3") != std::string::npos);
  REQUIRE(cache.ask("CLIENT TRACKING ON") == "+OK");
  REQUIRE(other.ask("SET k v PX 100") == "+OK");
  REQUIRE(cache.ask("GET k") == "\"v\"");
  CHECK(cache.reply() == ">[\"invalidate\", [\"k\"]]");
  CHECK(other.ask("EXISTS k") == "0");
}

TEST_CASE("CLIENT PAUSE: requests wait for its end, in their order") {
  const Server server;
  Client paused(server);
  Client other(server);
  REQUIRE(other.ask("CLIENT PAUSE 100 WRITE") == "+OK");
  paused.send("SET k 1\r\nINCR k\r\nGET k\r\n");
  CHECK(other.ask("GET k") == "nil");
  CHECK(paused.reply() == "+OK");
  CHECK(paused.reply() == "2");
  CHECK(paused.reply() == "\"2\"");
}

}  // namespace
}  // namespace holdfast::integration
