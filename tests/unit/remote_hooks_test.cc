// The engine of a proxy: requests on keys go to the hooks, run later on a copy of the key, and leave
// nothing behind.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace holdfast {

namespace {

// An engine whose hooks take each request with keys, and a client of it.
struct Rig {
  explicit Rig(int64_t busy_reply_ms = 5000) : engine(make_config(busy_reply_ms)), id(open()) {}

  Config make_config(int64_t busy_reply_ms) {
    Config c;
    c.hash_seed = 7;
    c.limits.busy_reply_ms = busy_reply_ms;
    c.clock_us = [this] { return clock_us += 1000; };
    c.random = [](std::span<uint8_t> bytes) { std::ranges::fill(bytes, uint8_t{7}); };
    c.remote.take = [this](const RemoteRequest& request) {
      if (request.keys.empty() && request.transaction == nullptr) return false;
      ++taken;
      keys.assign(request.keys.begin(), request.keys.end());
      return true;
    };
    c.remote.lock = [this](const RemoteLock& wanted) {
      lock = wanted;
      owner = wanted.owner;
    };
    c.remote.refuse = [](std::string_view command, auto, bool) {
      return command == "publish" ? std::string("ERR refused") : std::string();
    };
    c.remote.drop = [this](ConnId) { ++dropped; };
    return c;
  }
  ConnId open() { return engine.open("127.0.0.1:1", "127.0.0.1:2", now); }

  std::string ask(const std::vector<std::string>& words) {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    engine.apply(id, argv, now, fx);
    return received();
  }
  std::string received() {
    Buffer& out = engine.output(id);
    std::string text(out.view());
    out.consume(out.size());
    return text;
  }
  RemoteOutcome run(const std::vector<std::string>& words, const RemoteKey& before) {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    return engine.run_remote(id, argv, before, now, fx);
  }
  // Sends a request that the hook takes, and runs it.
  RemoteOutcome ask_and_run(const std::vector<std::string>& words, const RemoteKey& before) {
    CHECK(ask(words).empty());
    CHECK(engine.blocked(id));
    RemoteOutcome outcome = run(words, before);
    CHECK(engine.blocked(id));
    return outcome;
  }
  std::string answer(std::string_view reply) {
    engine.answer_remote(id, reply, now, fx);
    CHECK_FALSE(engine.blocked(id));
    return received();
  }

  int64_t clock_us = 0;
  Now now{{1000}, 1000000};
  Effects fx;
  int taken = 0;
  int dropped = 0;
  std::vector<std::string> keys;
  std::optional<RemoteLock> lock;
  std::string owner;
  Engine engine;
  ConnId id;
};

RemoteKey held(const std::string& value, int64_t ttl_ms = 500) {
  return {"k", true, value, TimeMs{1000 + ttl_ms}};
}
const RemoteKey kFree{"k", false, {}, kNever};

}  // namespace

TEST_CASE("remote keys: a request on a key waits for its answer, others run at once") {
  Rig rig;
  CHECK(rig.ask({"PING"}) == "+PONG\r\n");
  CHECK(rig.ask({"GET", "k"}).empty());
  CHECK(rig.engine.blocked(rig.id));
  CHECK(rig.keys == std::vector<std::string>{"k"});
  CHECK(rig.answer("$1\r\nv\r\n") == "$1\r\nv\r\n");
  CHECK(rig.ask({"PING"}) == "+PONG\r\n");
}

TEST_CASE("remote keys: a request runs on the copy, and the copy leaves no trace") {
  Rig rig;
  RemoteOutcome outcome = rig.ask_and_run({"GET", "k"}, held("v"));
  CHECK(outcome.reply == "$1\r\nv\r\n");
  CHECK(outcome.after == held("v"));
  outcome = rig.run({"GET", "k"}, kFree);
  CHECK(outcome.reply == "$-1\r\n");
  CHECK(outcome.after == kFree);
  rig.answer("+OK\r\n");
  CHECK(rig.ask({"INFO", "keyspace"}).find("db0") == std::string::npos);
}

TEST_CASE("remote keys: each change of the copy is seen") {
  Rig rig;
  CHECK(rig.ask_and_run({"SET", "k", "w", "PX", "70"}, held("v")).after == held("w", 70));
  CHECK(rig.run({"SET", "k", "w", "KEEPTTL"}, held("v")).after == held("w"));
  CHECK(rig.run({"SET", "k", "w"}, kFree).after == RemoteKey{"k", true, "w", kNever});
  CHECK(rig.run({"SET", "k", "w", "NX"}, held("v")).after == held("v"));
  CHECK(rig.run({"PEXPIRE", "k", "90"}, held("v")).after == held("v", 90));
  CHECK(rig.run({"PERSIST", "k"}, held("v")).after == RemoteKey{"k", true, "v", kNever});
  CHECK(rig.run({"PEXPIRE", "k", "-1"}, held("v")).after == kFree);
  CHECK(rig.run({"DEL", "k"}, held("v")).after == kFree);
}

TEST_CASE("remote keys: a script runs on the copy, and on no other key") {
  Rig rig;
  const std::string release =
      "if redis.call('get', KEYS[1]) == ARGV[1] then "
      "return redis.call('del', KEYS[1]) else return 0 end";
  RemoteOutcome outcome = rig.ask_and_run({"EVAL", release, "1", "k", "v"}, held("v"));
  CHECK(outcome.reply == ":1\r\n");
  CHECK(outcome.after == kFree);
  CHECK(rig.run({"EVAL", release, "1", "k", "w"}, held("v")).reply == ":0\r\n");
  CHECK(rig.run({"EVAL", "return redis.call('get', 'x')", "1", "k"}, held("v"))
            .reply.find("names another key") != std::string::npos);
  CHECK(rig.run({"EVAL", "return redis.call('publish', 'c', 'm')", "1", "k"}, held("v"))
            .reply.find("ERR refused") != std::string::npos);
}

TEST_CASE("remote keys: a script without a key has no key") {
  Rig rig;
  CHECK(rig.ask({"EVAL", "return 1", "0"}) == ":1\r\n");
  CHECK(rig.ask({"EVAL", "return redis.call('set', 'x', 'v')", "0"}).find("not in KEYS") !=
        std::string::npos);
  CHECK(rig.ask({"INFO", "keyspace"}).find("db0") == std::string::npos);
}

TEST_CASE("remote keys: a script that runs too long ends, and changes nothing") {
  Rig rig(20);
  const std::string loop = "redis.call('set', KEYS[1], 'w') while true do end";
  const RemoteOutcome outcome = rig.ask_and_run({"EVAL", loop, "1", "k"}, held("v"));
  CHECK(outcome.reply.find("ERR the script ran longer than busy-reply-threshold allows") !=
        std::string::npos);
  CHECK(outcome.after == held("v"));
  rig.answer(outcome.reply);
  CHECK(rig.ask({"EVAL", "while true do end", "0"}).find("ran longer") != std::string::npos);
  CHECK(rig.ask_and_run({"EVAL", "return 7", "1", "k"}, held("v")).reply == ":7\r\n");
}

TEST_CASE("remote keys: CLIENT REPLY holds for the answer, not for the run on the copy") {
  Rig rig;
  CHECK(rig.ask({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(rig.ask_and_run({"GET", "k"}, held("v")).reply == "$1\r\nv\r\n");
  CHECK(rig.run({"GET", "k"}, held("w")).reply == "$1\r\nw\r\n");
  CHECK(rig.answer("$1\r\nw\r\n").empty());
  CHECK(rig.ask({"PING"}) == "+PONG\r\n");
  CHECK(rig.ask({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(rig.ask({"LOCK", "k", "a", "100"}).empty());
  CHECK(rig.answer("*-1\r\n").empty());
  CHECK(rig.ask({"PING"}) == "+PONG\r\n");
  CHECK(rig.ask({"CLIENT", "REPLY", "OFF"}).empty());
  CHECK(rig.ask({"GET", "k"}).empty());
  CHECK(rig.answer("$1\r\nv\r\n").empty());
  CHECK(rig.ask({"CLIENT", "REPLY", "ON"}) == "+OK\r\n");
}

TEST_CASE("remote keys: CLIENT PAUSE stops a request before the hook, not after it") {
  Rig rig;
  CHECK(rig.ask({"GET", "k"}).empty());
  const ConnId other = rig.open();
  const std::vector<std::string_view> pause{"CLIENT", "PAUSE", "100"};
  rig.engine.apply(other, pause, rig.now, rig.fx);
  CHECK(rig.run({"GET", "k"}, held("v")).reply == "$1\r\nv\r\n");
  CHECK(rig.answer("+done\r\n") == "+done\r\n");
  CHECK(rig.ask({"GET", "k"}).empty());
  CHECK(rig.taken == 1);
  rig.now = {{1100}, 1100000};
  rig.engine.tick(rig.now, rig.fx);
  CHECK(rig.taken == 2);
  CHECK(rig.answer("+done\r\n") == "+done\r\n");
}

TEST_CASE("remote keys: EXEC runs on the copy, and can be discarded without a run") {
  Rig rig;
  rig.ask({"MULTI"});
  rig.ask({"SET", "k", "w"});
  rig.ask({"GET", "k"});
  const RemoteOutcome outcome = rig.ask_and_run({"EXEC"}, held("v"));
  CHECK(outcome.reply == "*2\r\n+OK\r\n$1\r\nw\r\n");
  CHECK(outcome.after == RemoteKey{"k", true, "w", kNever});
  rig.answer(outcome.reply);
  rig.ask({"MULTI"});
  rig.ask({"SET", "k", "w"});
  CHECK(rig.ask({"EXEC"}).empty());
  rig.engine.discard_remote(rig.id);
  CHECK(rig.answer("-ERR x\r\n") == "-ERR x\r\n");
  CHECK(rig.ask({"PING"}) == "+PONG\r\n");
}

TEST_CASE("remote keys: LOCK is read by the engine, with all its words") {
  Rig rig;
  CHECK(rig.ask({"LOCK", "k", "a", "soon"}).find("ttl must be") != std::string::npos);
  CHECK_FALSE(rig.engine.blocked(rig.id));
  CHECK(rig.ask({"LOCK", "k", "*", "100", "WAIT", "7", "SESSION", "DELAY", "9", "LIMIT", "3"}).empty());
  REQUIRE(rig.lock);
  CHECK(rig.owner.size() == 32);
  CHECK(rig.lock->wait == DurationMs{7});
  CHECK(rig.lock->delay == DurationMs{9});
  CHECK(rig.lock->limit == 3);
  CHECK(rig.lock->session);
  rig.answer("*-1\r\n");
  CHECK(rig.ask({"LOCK", "k", "a", "100", "SHARED", "TOKEN", "5"}).empty());
  CHECK(rig.lock->limit == RemoteLock::kNoLimit);
  CHECK(rig.lock->hint == 5);
  rig.answer("*-1\r\n");
  rig.ask({"HELLO", "3"});
  CHECK(rig.ask({"LOCK", "k", "a.1", "100", "TICKET", "5"}).empty());
  CHECK(rig.lock->ticket);
}

TEST_CASE("remote keys: the hook learns of the end of each connection") {
  Rig rig;
  rig.ask({"GET", "k"});
  rig.engine.drop(rig.id, rig.now, rig.fx);
  CHECK(rig.dropped == 1);
}

}  // namespace holdfast
