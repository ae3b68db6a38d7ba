// The engine's contracts with the shell that no transcript shows: budgets, memory, large numbers.
#include "core/engine.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/command.h"

namespace holdfast {
namespace {

struct Client {
  explicit Client(Engine& e) : engine(e), id(e.open("127.0.0.1:1", "127.0.0.1:2", now)) {}
  std::string say(const std::vector<std::string>& words) {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    engine.apply(id, argv, now, fx);
    return heard();
  }
  std::string heard() {
    Buffer& out = engine.output(id);
    const std::string text(out.view());
    out.consume(out.size());
    return text;
  }
  Engine& engine;
  Now now{{1000}, 1000000};
  Effects fx;
  ConnId id;
};

Config config() {
  Config c;
  c.random = [](std::span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), uint8_t{7}); };
  return c;
}

uint64_t used_memory(Client& c) {
  const std::string info = c.say({"INFO", "memory"});
  return std::stoull(info.substr(info.find("used_memory:") + 12));
}

}  // namespace

TEST_CASE(
    "engine: a storm of expiries is taken in steps of the budget, and a waiter does not wait for it") {
  Engine engine(config());
  Client c(engine);
  for (int i = 0; i < 50000; ++i) c.say({"SET", "k" + std::to_string(i), "v", "PX", "100"});
  c.say({"LOCK", "wanted", "alice", "100"});
  Client waiter(engine);
  CHECK(waiter.say({"LOCK", "wanted", "bob", "100000", "WAIT", "0"}).empty());
  const Now due{{1100}, 1100000};
  Effects fx;
  size_t before = 50001;
  int ticks = 0;
  while (engine.next_deadline() && engine.next_deadline()->count <= due.mono.count) {
    engine.tick(due, fx, 500);
    REQUIRE(++ticks < 1000);
    if (ticks == 1) CHECK(waiter.heard().substr(0, 12) == "*2\r\n$3\r\nbob\r");
  }
  CHECK(ticks >= static_cast<int>(before / 500));
  c.now = due;
  CHECK(c.say({"DBSIZE"}) == ":1\r\n");
}

TEST_CASE("engine: what would grow memory is refused above the limit, and not at it") {
  Config with_limit = config();
  uint64_t full = 0;
  {
    Engine probe(with_limit);
    Client c(probe);
    c.say({"SET", "a", "1"});
    full = used_memory(c);
  }
  for (const int64_t below : {-1, 0, 1}) {
    with_limit.limits.memory_bytes = full + static_cast<uint64_t>(below);
    Engine engine(with_limit);
    Client c(engine);
    CHECK(c.say({"SET", "a", "1"}) == "+OK\r\n");
    const bool refused = c.say({"LOCK", "b", "alice", "1000"}).starts_with("-OOM ");
    CHECK(refused == (below < 0));
    CHECK(c.say({"GET", "a"}) == "$1\r\n1\r\n");
    CHECK(c.say({"UNLOCK", "a", "1"}) == ":1\r\n");
    if (refused) CHECK_FALSE(c.say({"LOCK", "b", "alice", "1000"}).starts_with("-"));
  }
}

TEST_CASE("engine: a client whose requests take long is answered at once, alone and beside another") {
  Config with_clock = config();
  with_clock.clock_us = [us = int64_t{0}]() mutable { return us += 3000; };
  const std::vector<std::string> script = {"EVAL", "for i = 1, 200000 do end return 1", "0"};
  Engine engine(with_clock);
  Client heavy(engine);
  Client other(engine);
  other.say({"SET", "large", std::string(1000000, 'x')});
  for (int round = 0; round < 10; ++round) {
    CHECK(other.say({"PING"}) == "+PONG\r\n");
    CHECK(heavy.say(script) == ":1\r\n");
    CHECK(heavy.say({"GET", "large"}).size() > 1000000);
  }
}

TEST_CASE("engine: FLUSHALL answers at once, and the memory goes back in steps") {
  Engine engine(config());
  Client c(engine);
  for (int i = 0; i < 20000; ++i) c.say({"SET", "k" + std::to_string(i), "v"});
  CHECK(c.say({"FLUSHALL"}) == "+OK\r\n");
  CHECK(c.say({"DBSIZE"}) == ":0\r\n");
  Effects fx;
  int steps = 0;
  for (; engine.next_deadline(); ++steps) engine.tick(c.now, fx);
  CHECK(steps > 100);
}

TEST_CASE("engine: a reply takes no memory beyond client-output-buffer-limit, and its client is closed") {
  constexpr size_t kLimit = size_t{4} << 20U;
  Config limited = config();
  limited.limits.output_buffer_bytes = kLimit;
  Engine engine(std::move(limited));
  Client setter(engine);
  setter.say({"SET", "k", std::string(1U << 20U, 'x')});
  setter.say({"HSET", "h", "f", std::string(1U << 20U, 'x')});
  const auto request = [](std::vector<std::string> words, size_t times, const std::string& word) {
    words.insert(words.end(), times, word);
    return words;
  };
  const auto is_closed = [&](const std::vector<std::vector<std::string>>& requests) {
    Client c(engine);
    for (const auto& words : requests) {
      const std::vector<std::string_view> argv(words.begin(), words.end());
      CHECK_FALSE(engine.closing(c.id));
      engine.apply(c.id, argv, c.now, c.fx);
    }
    CHECK(engine.output(c.id).capacity() <= kLimit + 64);
    return engine.closing(c.id);
  };
  CHECK_FALSE(is_closed({request({"MGET"}, 3, "k")}));
  CHECK(is_closed({request({"MGET"}, 4, "k")}));
  CHECK(is_closed({request({"MGET"}, 100, "k")}));
  CHECK(is_closed({request({"HMGET", "h"}, 100, "f")}));
  CHECK(is_closed({request({"COMMAND", "DOCS"}, 20000, "SET")}));
  const std::vector<std::string> get = {"GET", "k"};
  CHECK(is_closed({{"MULTI"}, get, get, get, get, {"EXEC"}}));
  CHECK(is_closed({{"MULTI"}, get, get, get, get, {"EVAL", "return 1", "0"}, {"EXEC"}}));
  CHECK_FALSE(is_closed({{"CLIENT", "REPLY", "OFF"}, request({"MGET"}, 100, "k"), {"PING"}}));
}

TEST_CASE("engine: a reply at client-output-buffer-limit is given, one byte more is not") {
  Config limited = config();
  limited.limits.output_buffer_bytes = 10000;
  Engine engine(std::move(limited));
  Client setter(engine);
  const std::string header = "$9992\r\n";
  const std::string fitting(10000 - header.size() - 2, 'x');
  setter.say({"SET", "fits", fitting});
  setter.say({"SET", "large", fitting + "x"});
  Client c(engine);
  CHECK(c.say({"GET", "fits"}) == "$" + std::to_string(fitting.size()) + "\r\n" + fitting + "\r\n");
  CHECK_FALSE(engine.closing(c.id));
  CHECK(c.say({"GET", "large"}).empty());
  CHECK(engine.closing(c.id));
}

TEST_CASE("engine: a client that has not logged in may leave little unread") {
  Config guarded = config();
  guarded.requirepass = "secret";
  Engine engine(std::move(guarded));
  Client guest(engine);
  Client user(engine);
  REQUIRE(user.say({"AUTH", "secret"}) == "+OK\r\n");
  const std::vector<std::string_view> junk = {"x"};
  int sent = 0;
  for (; sent < 100000 && !engine.closing(guest.id); ++sent) {
    engine.apply(guest.id, junk, guest.now, guest.fx);
  }
  CHECK(sent > 100);
  CHECK(sent < 2000);
  CHECK(engine.output(guest.id).capacity() <= 16384 + 64);
  for (int i = 0; i < 100000; ++i) engine.apply(user.id, junk, user.now, user.fx);
  CHECK_FALSE(engine.closing(user.id));
}

TEST_CASE("engine: 10,000 waiters on one key are granted one by one, in order, one reply each") {
  Engine engine(config());
  Client holder(engine);
  holder.say({"LOCK", "k", "holder", "0"});
  std::vector<Client> waiters;
  for (int i = 0; i < 10000; ++i) {
    waiters.emplace_back(engine);
    REQUIRE(waiters.back().say({"LOCK", "k", "w" + std::to_string(i), "0", "WAIT", "0"}).empty());
  }
  holder.say({"UNLOCK", "k", "holder"});
  for (size_t i = 0; i < waiters.size(); ++i) {
    REQUIRE(waiters[i].heard().starts_with("*2\r\n"));
    Effects& fx = waiters[i].fx;
    fx.clear();
    waiters[i].say({"UNLOCK", "k", "w" + std::to_string(i)});
    const size_t woken = i + 1 < waiters.size() ? 1 : 0;
    REQUIRE(fx.wakes.size() == woken);
    REQUIRE(fx.dirty.size() == 1 + woken);
  }
  CHECK(holder.say({"EXISTS", "k"}) == ":0\r\n");
}

TEST_CASE("commands: the table is in order, without twins, and every row is told in full") {
  std::string_view last;
  for (const Command& c : all_commands()) {
    INFO(c.name);
    CHECK(last < c.name);
    last = c.name;
    CHECK_FALSE((c.summary.empty() || c.group.empty() || c.since.empty() || c.complexity.empty()));
    CHECK(c.arity != 0);
    CHECK(find_command(c.name) == &c);
    if (c.is_subcommand()) CHECK(find_command(c.container()) != nullptr);
    if (c.first_key != 0) CHECK(c.key_step > 0);
  }
  CHECK(find_command("LoCk") == find_command("lock"));
  CHECK(find_command("locks|INFO") != nullptr);
  CHECK(find_command("lockx") == nullptr);
  CHECK(find_command(std::string(1000, 'x')) == nullptr);
}

}  // namespace holdfast
