// Requests with very many names run in chunks of 64 names, one chunk per loop iteration.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/session.h"

namespace holdfast {
namespace {

std::vector<std::string> request(const std::string& verb, int names) {
  std::vector<std::string> words = {verb};
  for (int i = 0; i < names; ++i) words.push_back("n" + std::to_string(i));
  return words;
}

// Ticks until the client is unblocked. Keeps the number of ticks and the output after each.
struct Slices {
  Slices(Engine& engine, TestClient& client) {
    for (Effects fx; client.blocked(); ++turns) {
      REQUIRE(engine.next_deadline() == TimeMs{0});
      engine.tick(session_time(0), fx);
      engine.check_invariants();
      received.push_back(client.received());
    }
  }
  int turns = 0;
  std::vector<std::string> received;
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("chunks: SUBSCRIBE confirms 64 channels in a loop iteration, and later requests wait") {
  for (const auto& [number, turns] : {std::pair(64, 0), {65, 1}, {128, 1}, {129, 2}}) {
    const int names = number;  // clang 14 cannot capture `number`
    INFO(names);
    Engine engine(session_config());
    TestClient subscriber(engine);
    subscriber.must({"HELLO", "3"});
    const std::string first = subscriber.ask(request("SUBSCRIBE", names));
    CHECK(count(first, "$9\r\nsubscribe") == 64);
    CHECK(subscriber.blocked() == (turns > 0));
    const Slices rest(engine, subscriber);
    CHECK(rest.turns == turns);
    const std::string& end = turns > 0 ? rest.received.back() : first;
    CHECK(end.ends_with(":" + std::to_string(names) + "\r\n"));
    TestClient other(engine);
    CHECK(other.ask({"PUBLISH", "n" + std::to_string(names - 1), "x"}) == ":1\r\n");
    CHECK(subscriber.ask({"PING"}).ends_with("+PONG\r\n"));
  }
}

TEST_CASE("chunks: UNSUBSCRIBE with a list of channels and without one") {
  Engine engine(session_config());
  TestClient subscriber(engine);
  subscriber.must({"HELLO", "3"});
  subscriber.must(request("SUBSCRIBE", 200));
  CHECK(Slices(engine, subscriber).turns == 3);
  CHECK(count(subscriber.ask(request("UNSUBSCRIBE", 70)), "$11\r\nunsubscribe") == 64);
  const Slices some(engine, subscriber);
  CHECK(some.turns == 1);
  CHECK(some.received[0].ends_with(":130\r\n"));
  CHECK(count(subscriber.ask({"UNSUBSCRIBE"}), "$11\r\nunsubscribe") == 64);
  const Slices all(engine, subscriber);
  CHECK(all.turns == 2);
  CHECK(count(all.received[1], "$11\r\nunsubscribe") == 2);
  CHECK(all.received[1].ends_with(":0\r\n"));
  CHECK(subscriber.ask({"UNSUBSCRIBE"}).ends_with("_\r\n:0\r\n"));
  CHECK_FALSE(subscriber.blocked());
}

TEST_CASE("chunks: WATCH replies after its last key, and a change in the meantime counts") {
  for (const bool changes : {false, true}) {
    Engine engine(session_config());
    TestClient watcher(engine);
    TestClient other(engine);
    CHECK(watcher.ask(request("WATCH", 200)).empty());
    if (changes) other.must({"SET", "n0", "x"});
    CHECK(Slices(engine, watcher).received.back() == "+OK\r\n");
    watcher.must({"MULTI"});
    CHECK(watcher.ask({"EXEC"}) == (changes ? "*-1\r\n" : "*0\r\n"));
  }
}

TEST_CASE("chunks: UNWATCH removes all watches and forgets earlier changes") {
  Engine engine(session_config());
  TestClient watcher(engine);
  TestClient other(engine);
  watcher.ask(request("WATCH", 200));
  const Slices watched(engine, watcher);
  other.must({"SET", "n0", "x"});
  CHECK(watcher.ask({"UNWATCH"}).empty());
  other.must({"SET", "n199", "x"});
  const Slices unwatched(engine, watcher);
  CHECK(unwatched.turns == 3);
  CHECK(unwatched.received.back() == "+OK\r\n");
  watcher.must({"MULTI"});
  CHECK(watcher.ask({"EXEC"}) == "*0\r\n");
}

TEST_CASE("chunks: a request runs in one piece inside a transaction and where no reply is wanted") {
  Engine engine(session_config());
  TestClient subscriber(engine);
  subscriber.must({"HELLO", "3"});
  subscriber.must({"MULTI"});
  subscriber.must(request("SUBSCRIBE", 200));
  CHECK(count(subscriber.ask({"EXEC"}), "$9\r\nsubscribe") == 200);
  CHECK_FALSE(subscriber.blocked());
  subscriber.must({"CLIENT", "REPLY", "OFF"});
  CHECK(count(subscriber.ask({"UNSUBSCRIBE"}), "$11\r\nunsubscribe") == 200);  // pushes, not replies
  CHECK_FALSE(subscriber.blocked());
  TestClient other(engine);
  CHECK(other.ask({"PUBLISH", "n0", "x"}) == ":0\r\n");
}

TEST_CASE("chunks: a permission lost between chunks rejects that chunk and the rest") {
  Engine engine(session_config());
  TestClient admin(engine);
  admin.must({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "&*"});
  TestClient subscriber(engine);
  subscriber.must({"HELLO", "3", "AUTH", "u", ""});
  std::vector<std::string> words = {"SUBSCRIBE"};
  for (int i = 0; i < 64; ++i) words.push_back("open:" + std::to_string(i));
  for (int i = 0; i < 200; ++i) words.push_back("closed:" + std::to_string(i));
  subscriber.must(words);
  admin.must({"ACL", "SETUSER", "u", "resetchannels", "&open:*"});
  const Slices rest(engine, subscriber);
  CHECK(rest.turns == 1);
  CHECK(rest.received[0].starts_with("-NOPERM "));
  CHECK(admin.ask({"PUBLISH", "open:63", "x"}) == ":1\r\n");
  CHECK(admin.ask({"PUBLISH", "closed:0", "x"}) == ":0\r\n");
}

TEST_CASE("chunks: PSUBSCRIBE accepts all patterns or none, in one piece") {
  Config config = session_config();
  config.limits.patterns = 100;
  Engine engine(std::move(config));
  TestClient subscriber(engine);
  subscriber.must({"HELLO", "3"});
  CHECK(subscriber.ask(request("PSUBSCRIBE", 101)).starts_with("-ERR too many patterns"));
  CHECK(count(subscriber.ask(request("PSUBSCRIBE", 100)), "$10\r\npsubscribe") == 100);
  CHECK_FALSE(subscriber.blocked());
  CHECK(subscriber.ask({"PSUBSCRIBE", "another"}).starts_with("-ERR too many patterns"));
  CHECK(count(subscriber.ask(request("PSUBSCRIBE", 100)), "$10\r\npsubscribe") == 100);
}

TEST_CASE("chunks: requests of several clients alternate, and a disconnected client leaves no state") {
  Engine engine(session_config());
  TestClient one(engine);
  TestClient two(engine);
  TestClient client(engine);
  one.must(request("SUBSCRIBE", 200));
  client.must(request("SUBSCRIBE", 200));
  two.must(request("SUBSCRIBE", 200));
  client.disconnect();
  Effects fx;
  for (int i = 0; one.blocked() || two.blocked(); ++i) {
    REQUIRE(i < 20);
    engine.tick(session_time(0), fx);
    engine.check_invariants();
  }
  CHECK(one.ask({"PING"}).ends_with("*2\r\n$4\r\npong\r\n$0\r\n\r\n"));
  while (engine.next_deadline() == TimeMs{0}) engine.tick(session_time(0), fx);
  TestClient other(engine);
  CHECK(other.ask({"PUBSUB", "NUMSUB", "n0", "n199"}) == "*4\r\n$2\r\nn0\r\n:2\r\n$4\r\nn199\r\n:2\r\n");
}

}  // namespace
}  // namespace holdfast
