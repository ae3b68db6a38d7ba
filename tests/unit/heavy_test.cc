// Heavy requests: what keeps everybody waiting for a moment is put off while others are there.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit/session.h"

namespace holdfast {
namespace {

const std::vector<std::string> kBomb = {"EVAL", "for i = 1, 200000 do end return 1", "0"};
const std::vector<std::string> kSmall = {"EVAL", "return 2", "0"};

// An engine whose clock goes on by a step each time that it is looked at, so that kBomb takes three.
struct Scene {
  Scene() {
    Config config = session_config();
    config.clock_us = [this] { return us += step_us; };
    engine = std::make_unique<Engine>(std::move(config));
  }
  // The others ask for something, and what is due happens.
  void pass_to(Talker& other, int64_t ms) {
    for (; now_ms < ms; now_ms = std::min(now_ms + 400, ms)) {
      other.at(session_time(now_ms));
      other.must({"PING"});
    }
    tick_at(ms);
  }
  void tick_at(int64_t ms) {
    Effects fx;
    engine->tick(session_time(ms), fx);
    engine->check_invariants();
  }
  int64_t step_us = 3000;
  int64_t us = 0;
  int64_t now_ms = 0;
  std::unique_ptr<Engine> engine;
};

TEST_CASE("heavy: after a script of 9 ms the connection's next waits for 1.8 s, and for no longer") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  CHECK(heavy.say(kBomb) == ":1\r\n");
  other.must({"PING"});
  CHECK(heavy.say(kSmall).empty());
  CHECK(heavy.blocked());
  scene.pass_to(other, 1799);
  CHECK(heavy.heard().empty());
  CHECK(heavy.blocked());
  scene.pass_to(other, 1800);
  CHECK(heavy.heard() == ":2\r\n");
  CHECK_FALSE(heavy.blocked());
  heavy.at(session_time(1800));
  CHECK(heavy.say(kSmall) == ":2\r\n");  // it was a small one, and has paid
  CHECK_FALSE(scene.engine->next_deadline());
}

TEST_CASE("heavy: next_deadline() says when the next is due") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  heavy.must(kBomb);
  other.must({"PING"});
  heavy.say(kBomb);
  CHECK(scene.engine->next_deadline() == session_time(1000).mono);  // if nobody asks for anything till then
  scene.pass_to(other, 1700);
  CHECK(scene.engine->next_deadline() == session_time(1800).mono);
}

TEST_CASE("heavy: locks, and what cannot be heavy, are not put off") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  heavy.must(kBomb);
  other.must({"PING"});
  heavy.must({"LOCK", "a", "me", "60000"});
  heavy.must({"RENEW", "a", "me", "60000"});
  heavy.must({"LOCKS", "CHECK", "a", "1"});
  heavy.must({"SET", "k", "v", "NX", "PX", "1000"});
  heavy.must({"MULTI"});
  CHECK(heavy.say({"GET", "k"}) == "+QUEUED\r\n");
  CHECK(heavy.say(kSmall) == "+QUEUED\r\n");
  heavy.must({"DISCARD"});
  heavy.must({"UNLOCK", "a", "me"});
  heavy.must({"PING"});
  other.must(kSmall);  // of somebody who has had none
  CHECK(heavy.say({"GET", "k"}).empty());
  CHECK(heavy.blocked());
}

TEST_CASE("heavy: what may be as heavy as the last is put off under any name") {
  const std::vector<std::vector<std::string>> requests = {kSmall,
                                                          {"EVAL_RO", "return 2", "0"},
                                                          {"EVALSHA", std::string(40, 'a'), "0"},
                                                          {"GET", "k"},
                                                          {"EXEC"},
                                                          {"SCRIPT", "LOAD", "return 3"},
                                                          {"KEYS", "*"},
                                                          {"LOCKS", "LIST", "0"}};
  for (const auto& request : requests) {
    INFO(request[0]);
    Scene scene;
    Talker heavy(*scene.engine);
    Talker other(*scene.engine);
    heavy.must(kBomb);
    other.must({"PING"});
    if (request[0] == "EXEC") heavy.must({"MULTI"});
    CHECK(heavy.say(request).empty());
    CHECK(heavy.blocked());
    scene.pass_to(other, 1800);
    CHECK_FALSE(heavy.heard().empty());
    CHECK_FALSE(heavy.blocked());
  }
}

TEST_CASE("heavy: who has the server for himself waits for nothing") {
  Scene scene;
  Talker heavy(*scene.engine);
  for (int i = 0; i < 5; ++i) CHECK(heavy.say(kBomb) == ":1\r\n");
  CHECK_FALSE(heavy.blocked());
}

TEST_CASE("heavy: nor does he a second after the last of the others") {
  for (const bool pair : {false, true}) {
    INFO(pair);
    Scene scene;
    Talker heavy(*scene.engine);
    Talker second(*scene.engine);
    Talker other(*scene.engine);
    other.must({"PING"});
    heavy.must(kBomb);
    if (pair) second.must(kBomb);
    heavy.say(kBomb);
    if (pair) {
      second.at(session_time(900));
      second.must({"PING"});  // one that was heavy itself, of late
    }
    scene.tick_at(1008);  // for 9 ms nobody could ask for anything
    CHECK(heavy.blocked());
    scene.tick_at(1009);
    CHECK(heavy.heard() == ":1\r\n");
  }
}

TEST_CASE("heavy: all wait together, in their order") {
  Scene scene;
  Talker first(*scene.engine);
  Talker second(*scene.engine);
  Talker other(*scene.engine);
  second.must(kBomb);
  first.must(kBomb);  // 3.6 s
  other.must({"PING"});
  first.say(kBomb);
  second.say(kBomb);
  scene.pass_to(other, 3599);
  CHECK(first.blocked());
  scene.pass_to(other, 3600);
  CHECK(first.heard() == ":1\r\n");
  scene.pass_to(other, 5399);
  CHECK(second.blocked());
  scene.pass_to(other, 5400);
  CHECK(second.heard() == ":1\r\n");
}

TEST_CASE("heavy: the last of many is followed by no longer a pause than a single one") {
  Scene scene;
  Talker other(*scene.engine);
  Talker heavy(*scene.engine);
  for (int i = 0; i < 20; ++i) Talker(*scene.engine).must(kBomb);  // 36 s
  heavy.must(kBomb);
  other.must({"PING"});
  heavy.say(kSmall);
  scene.pass_to(other, 10008);
  CHECK(heavy.blocked());
  scene.pass_to(other, 10009);
  CHECK(heavy.heard() == ":2\r\n");
}

TEST_CASE("heavy: who waits hears at once of what else concerns him") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  heavy.must({"HELLO", "3"});
  heavy.must({"LOCK", "a", "me", "500", "WAIT", "1000", "ASYNC"});
  heavy.must(kBomb);
  other.must({"PING"});
  CHECK(heavy.say(kSmall).empty());
  scene.pass_to(other, 500);
  CHECK(heavy.heard() == ">4\r\n$4\r\nlock\r\n$4\r\nlost\r\n$1\r\na\r\n$2\r\nme\r\n");
  scene.pass_to(other, 1800);
  CHECK(heavy.heard() == ":2\r\n");
}

TEST_CASE("heavy: one who has gone, or is killed, keeps nobody") {
  for (const bool killed : {false, true}) {
    INFO(killed);
    Scene scene;
    auto gone = std::make_unique<Talker>(*scene.engine);
    Talker heavy(*scene.engine);
    Talker other(*scene.engine);
    gone->must(kBomb);
    heavy.must(kBomb);
    other.must({"PING"});
    gone->say(kBomb);
    heavy.say(kSmall);
    if (killed) other.must({"CLIENT", "KILL", "ID", "1"});
    gone->leave();
    scene.pass_to(other, 3600);
    CHECK(heavy.heard() == ":2\r\n");
    CHECK(other.say({"INFO", "stats"}).find("heavy_requests:2\r\nheavy_requests_waiting:0\r\n") !=
          std::string::npos);
  }
}

TEST_CASE("heavy: a script that was put off may give way, and of its middle nobody hears") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  Talker waiter(*scene.engine);
  heavy.must({"LOCK", "a", "me", "60000"});
  heavy.must(kBomb);
  waiter.say({"LOCK", "a", "he", "60000", "WAIT", "60000"});
  other.must({"PING"});
  heavy.say({"EVAL", "redis.call('UNLOCK', 'a', 'me') for i = 1, 900000 do end return 3", "0"});
  other.must({"SCRIPT", "FLUSH"});  // leaves garbage
  scene.step_us = 3'000'000;
  scene.pass_to(other, 1800);
  CHECK(heavy.blocked());
  CHECK(other.say({"GET", "a"}).starts_with("-BUSY"));
  CHECK(waiter.heard().empty());
  for (int ticks = 0; heavy.blocked() && ticks < 20; ++ticks) scene.tick_at(1800 + ticks);
  CHECK(heavy.heard() == ":3\r\n");
  CHECK(waiter.heard().starts_with("*2\r\n$2\r\nhe\r\n"));
}

TEST_CASE("heavy: who could ask for nothing while it ran is there all the same") {
  Scene scene;
  scene.step_us = 400'000;  // 1.2 s for each
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  other.must({"PING"});
  heavy.must(kBomb);
  heavy.say(kBomb);
  scene.tick_at(1200);
  CHECK(heavy.blocked());
  scene.tick_at(2199);
  CHECK(heavy.blocked());
  scene.tick_at(2200);
  CHECK(heavy.heard() == ":1\r\n");
}

TEST_CASE("heavy: CLIENT PAUSE lets nobody past the others") {
  Scene scene;
  Talker first(*scene.engine);
  Talker second(*scene.engine);
  Talker other(*scene.engine);
  first.must(kBomb);
  second.must(kBomb);  // 3.6 s
  other.must({"PING"});
  first.say(kBomb);
  second.say(kBomb);
  other.must({"CLIENT", "PAUSE", "3700"});
  for (const int ms : {1000, 3600, 3699}) {
    scene.tick_at(ms);
    CHECK(first.blocked());
    CHECK(*scene.engine->next_deadline() > session_time(ms).mono);
  }
  other.at(session_time(3699));
  other.say({"PING"});
  scene.tick_at(3700);
  CHECK(first.heard() == ":1\r\n");
  CHECK(second.heard().empty());
  CHECK(second.blocked());
}

TEST_CASE("heavy: the end of CLIENT PAUSE lets nobody in early, and a pause holds who is due") {
  Scene scene;
  Talker heavy(*scene.engine);
  Talker other(*scene.engine);
  heavy.must(kBomb);
  other.must({"PING"});
  heavy.say(kSmall);
  other.must({"CLIENT", "PAUSE", "2000"});
  scene.tick_at(1000);  // nobody could ask for a second
  CHECK(heavy.blocked());
  other.at(session_time(1500));
  other.say({"PING"});
  scene.tick_at(1999);
  CHECK(heavy.heard().empty());
  scene.tick_at(2000);
  CHECK(heavy.heard() == ":2\r\n");
  CHECK(other.heard() == "+PONG\r\n");

  heavy.at(session_time(2000));
  heavy.must(kBomb);
  other.at(session_time(2000));
  other.must({"PING"});
  heavy.say(kSmall);
  other.must({"CLIENT", "PAUSE", "10"});
  scene.tick_at(2010);
  CHECK(heavy.blocked());
}

TEST_CASE("heavy: the pause is as long as heavy-request-pause says, 10 s at most, and 0 is none") {
  for (const auto& [step_us, times, pause_ms] :
       {std::tuple(3000, 200, 1800), {3000, 1, 9}, {100000, 200, 10300}, {100, 200, 0}, {3000, 0, 0}}) {
    INFO(step_us, " us, ", times, " times");
    int64_t us = 0;
    Config config = session_config();
    config.clock_us = [&us, step = int64_t{step_us}] { return us += step; };
    config.heavy_request_pause = static_cast<uint32_t>(times);
    Engine engine(std::move(config));
    Talker heavy(engine);
    Talker other(engine);
    heavy.must(kBomb);
    for (int64_t ms = 0; ms < pause_ms; ms += 500) {
      other.at(session_time(ms));
      other.must({"PING"});
    }
    other.at(session_time(std::max(pause_ms - 1, 0)));
    other.must({"PING"});
    heavy.at(session_time(std::max(pause_ms - 1, 0)));
    heavy.say(kSmall);
    CHECK(heavy.blocked() == (pause_ms > 0));
    Effects fx;
    engine.tick(session_time(pause_ms), fx);
    CHECK_FALSE(heavy.blocked());
  }
}

TEST_CASE("heavy: replies from half a megabyte on, whatever asks for them") {
  constexpr size_t kHeader = sizeof("$524277\r\n\r\n") - 1;
  constexpr size_t kLarge = (size_t{512} << 10U) - kHeader;
  for (const auto& [size, heavy_ones] : {std::pair(kLarge - 1, 0), {kLarge, 1}}) {
    for (const std::vector<std::string>& request : std::vector<std::vector<std::string>>{
             {"GET", "large"}, {"GETEX", "large"}, {"EVAL", "return redis.call('get', 'large')", "0"}}) {
      INFO(size, " ", request[0]);
      Engine engine(session_config());
      Talker reader(engine);
      Talker other(engine);
      reader.must({"SET", "large", std::string(size, 'x')});
      CHECK(reader.say(request).size() == size + kHeader);
      CHECK(other.say({"INFO", "stats"}).find("heavy_requests:" + std::to_string(heavy_ones) + "\r\n") !=
            std::string::npos);
      reader.say({"GET", "none"});
      CHECK(reader.blocked() == (heavy_ones > 0));
      Effects fx;
      engine.tick(session_time(51), fx);
      CHECK_FALSE(reader.blocked());
    }
  }
  Engine engine(session_config());
  Talker echo(engine);
  Talker(engine).must({"PING"});
  echo.must({"ECHO", std::string(kLarge, 'x')});
  echo.say({"PING", std::string(kLarge, 'x')});
  CHECK(echo.blocked());
  Talker writer(engine);
  Talker other(engine);
  writer.must({"SET", "large", std::string(kLarge, 'x')});
  writer.must({"GETEX", "large"});
  other.must({"PING"});
  writer.say({"GETSET", "large", "small"});
  CHECK(writer.blocked());
}

TEST_CASE("heavy: what a script does counts, not the clock alone") {
  const std::string nested = "local s = string.rep('[', 300000) return #s";
  const std::string search = "return string.find(string.rep('a', 40), string.rep('a-', 4) .. 'b')";
  const std::string long_body = "return 1 --" + std::string(70000, 'x');
  for (const auto& [script, heavy_ones] : {std::pair(std::string("return 1"), 0),
                                           {std::string("for i = 1, 1000 do end return 1"), 0},
                                           {std::string("local t = {} for i = 1, 9000 do t[i] = i end"), 1},
                                           {nested, 1},
                                           {"for i = 1, 9 do redis.sha1hex(string.rep('x', 600)) end", 1},
                                           {"return redis.call('keys', '*')", 1},
                                           {"return redis.call('get', 'x')", 0},
                                           {search, 1},
                                           {long_body, 1}}) {
    INFO(script.substr(0, 60));
    Scene scene;
    Talker talker(*scene.engine);
    talker.must({"EVAL", script, "0"});
    CHECK(talker.say({"INFO", "stats"}).find("heavy_requests:" + std::to_string(heavy_ones) + "\r\n") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast
