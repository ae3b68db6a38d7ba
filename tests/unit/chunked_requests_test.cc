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

// Ticks until the talker is unblocked. Keeps the number of ticks and the output after each.
struct Slices {
  Slices(Engine& engine, Talker& talker) {
    for (Effects fx; talker.blocked(); ++turns) {
      REQUIRE(engine.next_deadline() == TimeMs{0});
      engine.tick(session_time(0), fx);
      engine.check_invariants();
      heard.push_back(talker.heard());
    }
  }
  int turns = 0;
  std::vector<std::string> heard;
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("chunks: SUBSCRIBE confirms 64 channels in a loop iteration, and later requests wait") {
  for (const auto& [names, turns] : {std::pair(64, 0), {65, 1}, {128, 1}, {129, 2}}) {
    INFO(names);
    Engine engine(session_config());
    Talker hearer(engine);
    hearer.must({"HELLO", "3"});
    const std::string first = hearer.say(request("SUBSCRIBE", names));
    CHECK(count(first, "$9\r\nsubscribe") == 64);
    CHECK(hearer.blocked() == (turns > 0));
    const Slices rest(engine, hearer);
    CHECK(rest.turns == turns);
    const std::string& end = turns > 0 ? rest.heard.back() : first;
    CHECK(end.ends_with(":" + std::to_string(names) + "\r\n"));
    Talker other(engine);
    CHECK(other.say({"PUBLISH", "n" + std::to_string(names - 1), "x"}) == ":1\r\n");
    CHECK(hearer.say({"PING"}).ends_with("+PONG\r\n"));
  }
}

TEST_CASE("chunks: UNSUBSCRIBE with a list of channels and without one") {
  Engine engine(session_config());
  Talker hearer(engine);
  hearer.must({"HELLO", "3"});
  hearer.must(request("SUBSCRIBE", 200));
  CHECK(Slices(engine, hearer).turns == 3);
  CHECK(count(hearer.say(request("UNSUBSCRIBE", 70)), "$11\r\nunsubscribe") == 64);
  const Slices some(engine, hearer);
  CHECK(some.turns == 1);
  CHECK(some.heard[0].ends_with(":130\r\n"));
  CHECK(count(hearer.say({"UNSUBSCRIBE"}), "$11\r\nunsubscribe") == 64);
  const Slices all(engine, hearer);
  CHECK(all.turns == 2);
  CHECK(count(all.heard[1], "$11\r\nunsubscribe") == 2);
  CHECK(all.heard[1].ends_with(":0\r\n"));
  CHECK(hearer.say({"UNSUBSCRIBE"}).ends_with("_\r\n:0\r\n"));
  CHECK_FALSE(hearer.blocked());
}

TEST_CASE("chunks: WATCH replies after its last key, and a change in the meantime counts") {
  for (const bool changes : {false, true}) {
    Engine engine(session_config());
    Talker watcher(engine);
    Talker other(engine);
    CHECK(watcher.say(request("WATCH", 200)).empty());
    if (changes) other.must({"SET", "n0", "x"});
    CHECK(Slices(engine, watcher).heard.back() == "+OK\r\n");
    watcher.must({"MULTI"});
    CHECK(watcher.say({"EXEC"}) == (changes ? "*-1\r\n" : "*0\r\n"));
  }
}

TEST_CASE("chunks: UNWATCH removes all watches and forgets earlier changes") {
  Engine engine(session_config());
  Talker watcher(engine);
  Talker other(engine);
  watcher.say(request("WATCH", 200));
  const Slices watched(engine, watcher);
  other.must({"SET", "n0", "x"});
  CHECK(watcher.say({"UNWATCH"}).empty());
  other.must({"SET", "n199", "x"});
  const Slices unwatched(engine, watcher);
  CHECK(unwatched.turns == 3);
  CHECK(unwatched.heard.back() == "+OK\r\n");
  watcher.must({"MULTI"});
  CHECK(watcher.say({"EXEC"}) == "*0\r\n");
}

TEST_CASE("chunks: a request runs in one piece inside a transaction and where no reply is wanted") {
  Engine engine(session_config());
  Talker hearer(engine);
  hearer.must({"HELLO", "3"});
  hearer.must({"MULTI"});
  hearer.must(request("SUBSCRIBE", 200));
  CHECK(count(hearer.say({"EXEC"}), "$9\r\nsubscribe") == 200);
  CHECK_FALSE(hearer.blocked());
  hearer.must({"CLIENT", "REPLY", "OFF"});
  CHECK(count(hearer.say({"UNSUBSCRIBE"}), "$11\r\nunsubscribe") == 200);  // pushes, not replies
  CHECK_FALSE(hearer.blocked());
  Talker other(engine);
  CHECK(other.say({"PUBLISH", "n0", "x"}) == ":0\r\n");
}

TEST_CASE("chunks: a permission lost between chunks rejects that chunk and the rest") {
  Engine engine(session_config());
  Talker admin(engine);
  admin.must({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "&*"});
  Talker hearer(engine);
  hearer.must({"HELLO", "3", "AUTH", "u", ""});
  std::vector<std::string> words = {"SUBSCRIBE"};
  for (int i = 0; i < 64; ++i) words.push_back("open:" + std::to_string(i));
  for (int i = 0; i < 200; ++i) words.push_back("closed:" + std::to_string(i));
  hearer.must(words);
  admin.must({"ACL", "SETUSER", "u", "resetchannels", "&open:*"});
  const Slices rest(engine, hearer);
  CHECK(rest.turns == 1);
  CHECK(rest.heard[0].starts_with("-NOPERM "));
  CHECK(admin.say({"PUBLISH", "open:63", "x"}) == ":1\r\n");
  CHECK(admin.say({"PUBLISH", "closed:0", "x"}) == ":0\r\n");
}

TEST_CASE("chunks: PSUBSCRIBE accepts all patterns or none, in one piece") {
  Config config = session_config();
  config.limits.patterns = 100;
  Engine engine(std::move(config));
  Talker hearer(engine);
  hearer.must({"HELLO", "3"});
  CHECK(hearer.say(request("PSUBSCRIBE", 101)).starts_with("-ERR too many patterns"));
  CHECK(count(hearer.say(request("PSUBSCRIBE", 100)), "$10\r\npsubscribe") == 100);
  CHECK_FALSE(hearer.blocked());
  CHECK(hearer.say({"PSUBSCRIBE", "another"}).starts_with("-ERR too many patterns"));
  CHECK(count(hearer.say(request("PSUBSCRIBE", 100)), "$10\r\npsubscribe") == 100);
}

TEST_CASE("chunks: requests of several clients alternate, and a disconnected client leaves no state") {
  Engine engine(session_config());
  Talker one(engine);
  Talker two(engine);
  Talker leaver(engine);
  one.must(request("SUBSCRIBE", 200));
  leaver.must(request("SUBSCRIBE", 200));
  two.must(request("SUBSCRIBE", 200));
  leaver.leave();
  Effects fx;
  for (int i = 0; one.blocked() || two.blocked(); ++i) {
    REQUIRE(i < 20);
    engine.tick(session_time(0), fx);
    engine.check_invariants();
  }
  CHECK(one.say({"PING"}).ends_with("*2\r\n$4\r\npong\r\n$0\r\n\r\n"));
  while (engine.next_deadline() == TimeMs{0}) engine.tick(session_time(0), fx);
  Talker other(engine);
  CHECK(other.say({"PUBSUB", "NUMSUB", "n0", "n199"}) == "*4\r\n$2\r\nn0\r\n:2\r\n$4\r\nn199\r\n:2\r\n");
}

}  // namespace
}  // namespace holdfast
