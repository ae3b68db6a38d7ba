// The engine's contracts with the shell that transcripts cannot show: budgets, memory, large numbers.
#include "core/engine/engine.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/codec/request_batch.h"
#include "core/command/acl_selector.h"
#include "core/command/command.h"
#include "core/engine/engine_parts.h"

namespace holdfast {
namespace {

struct Client {
  explicit Client(Engine& e) : engine(e), id(e.open("127.0.0.1:1", "127.0.0.1:2", now)) {}
  std::string ask(const std::vector<std::string>& words) {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    engine.apply(id, argv, now, fx);
    return received();
  }
  std::string received() {
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
  const std::string info = c.ask({"INFO", "memory"});
  return std::stoull(info.substr(info.find("used_memory:") + 12));
}

}  // namespace

TEST_CASE("engine: very many expiries run in steps of the budget, and a waiter is not delayed by them") {
  Engine engine(config());
  Client c(engine);
  for (int i = 0; i < 50000; ++i) c.ask({"SET", "k" + std::to_string(i), "v", "PX", "100"});
  c.ask({"LOCK", "wanted", "alice", "100"});
  Client waiter(engine);
  CHECK(waiter.ask({"LOCK", "wanted", "bob", "100000", "WAIT", "0"}).empty());
  const Now due{{1100}, 1100000};
  Effects fx;
  size_t before = 50001;
  int ticks = 0;
  while (engine.next_deadline() && engine.next_deadline()->count <= due.mono.count) {
    engine.tick(due, fx, 500);
    REQUIRE(++ticks < 1000);
    if (ticks == 1) CHECK(waiter.received().substr(0, 12) == "*2\r\n$3\r\nbob\r");
  }
  CHECK(ticks >= static_cast<int>(before / 500));
  c.now = due;
  CHECK(c.ask({"DBSIZE"}) == ":1\r\n");
}

TEST_CASE("engine: requests that grow memory are rejected above the limit, and not at it") {
  Config with_limit = config();
  uint64_t full = 0;
  {
    Engine probe(with_limit);
    Client c(probe);
    c.ask({"SET", "a", "1"});
    full = used_memory(c);
  }
  for (const int64_t below : {-1, 0, 1}) {
    with_limit.limits.memory_bytes = full + static_cast<uint64_t>(below);
    Engine engine(with_limit);
    Client c(engine);
    CHECK(c.ask({"SET", "a", "1"}) == "+OK\r\n");
    const bool refused = c.ask({"LOCK", "b", "alice", "1000"}).starts_with("-OOM ");
    CHECK(refused == (below < 0));
    CHECK(c.ask({"GET", "a"}) == "$1\r\n1\r\n");
    CHECK(c.ask({"UNLOCK", "a", "1"}) == ":1\r\n");
    if (refused) CHECK_FALSE(c.ask({"LOCK", "b", "alice", "1000"}).starts_with("-"));
  }
}

TEST_CASE("engine: a client with long requests is answered at once, alone and beside another") {
  Config with_clock = config();
  with_clock.clock_us = [us = int64_t{0}]() mutable { return us += 3000; };
  const std::vector<std::string> script = {"EVAL", "for i = 1, 200000 do end return 1", "0"};
  Engine engine(with_clock);
  Client heavy(engine);
  Client other(engine);
  other.ask({"SET", "large", std::string(1000000, 'x')});
  for (int round = 0; round < 10; ++round) {
    CHECK(other.ask({"PING"}) == "+PONG\r\n");
    CHECK(heavy.ask(script) == ":1\r\n");
    CHECK(heavy.ask({"GET", "large"}).size() > 1000000);
  }
}

TEST_CASE("engine: FLUSHALL replies at once, and its memory is freed in steps") {
  Engine engine(config());
  Client c(engine);
  for (int i = 0; i < 20000; ++i) c.ask({"SET", "k" + std::to_string(i), "v"});
  CHECK(c.ask({"FLUSHALL"}) == "+OK\r\n");
  CHECK(c.ask({"DBSIZE"}) == ":0\r\n");
  Effects fx;
  int steps = 0;
  for (; engine.next_deadline(); ++steps) engine.tick(c.now, fx);
  CHECK(steps > 100);
}

TEST_CASE("engine: a reply allocates nothing beyond client-output-buffer-limit, and its client is closed") {
  constexpr size_t kLimit = size_t{4} << 20U;
  Config limited = config();
  limited.limits.output_buffer_bytes = kLimit;
  Engine engine(std::move(limited));
  Client setter(engine);
  setter.ask({"SET", "k", std::string(1U << 20U, 'x')});
  setter.ask({"HSET", "h", "f", std::string(1U << 20U, 'x')});
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

TEST_CASE("engine: a reply at client-output-buffer-limit is sent, one byte more is not") {
  Config limited = config();
  limited.limits.output_buffer_bytes = 20000;
  Engine engine(std::move(limited));
  Client setter(engine);
  const std::string header = "$19990\r\n";
  const std::string fitting(20000 - header.size() - 2, 'x');
  setter.ask({"SET", "fits", fitting});
  setter.ask({"SET", "large", fitting + "x"});
  Client c(engine);
  CHECK(c.ask({"GET", "fits"}) == "$" + std::to_string(fitting.size()) + "\r\n" + fitting + "\r\n");
  CHECK_FALSE(engine.closing(c.id));
  c.ask({"GET", "large"});
  CHECK(engine.closing(c.id));
}

TEST_CASE("engine: the unread input of a client that has not logged in has a low limit") {
  Config guarded = config();
  guarded.requirepass = "secret";
  Engine engine(std::move(guarded));
  Client preauth(engine);
  Client user(engine);
  REQUIRE(user.ask({"AUTH", "secret"}) == "+OK\r\n");
  const std::vector<std::string_view> junk = {"x"};
  int sent = 0;
  for (; sent < 100000 && !engine.closing(preauth.id); ++sent) {
    engine.apply(preauth.id, junk, preauth.now, preauth.fx);
  }
  CHECK(sent > 100);
  CHECK(sent < 2000);
  CHECK(engine.output(preauth.id).capacity() <= 16384 + 64);
  for (int i = 0; i < 100000; ++i) engine.apply(user.id, junk, user.now, user.fx);
  CHECK_FALSE(engine.closing(user.id));
}

TEST_CASE("engine: flushed keys that wait to be freed are few, count as used, and are freed when needed") {
  Config limited = config();
  limited.limits.memory_bytes = 30U << 20U;
  Engine engine(std::move(limited));
  Client c(engine);
  for (int i = 0; i < 300; ++i) {
    c.ask({"SET", "k", "v"});
    c.ask({"FLUSHALL"});
  }
  CHECK(engine.state().flushed.size() <= 17);
  Effects fx;
  while (engine.next_deadline()) engine.tick(c.now, fx);
  const uint64_t empty = used_memory(c);
  const std::string value(1U << 20U, 'v');
  for (int i = 0; i < 20; ++i) c.ask({"SET", "k" + std::to_string(i), value});
  c.ask({"FLUSHALL"});
  CHECK(used_memory(c) > empty + (20U << 20U));
  for (int i = 0; i < 20; ++i) CHECK(c.ask({"SET", "k" + std::to_string(i), value}) == "+OK\r\n");
  while (engine.next_deadline()) engine.tick(c.now, fx);
  CHECK(used_memory(c) < empty + (22U << 20U));
  CHECK(c.ask({"FLUSHALL"}) == "+OK\r\n");
  while (engine.next_deadline()) engine.tick(c.now, fx);
  CHECK(used_memory(c) <= empty + 4096);
}

TEST_CASE("engine: all memory that clients can allocate counts as used, until they disconnect") {
  Engine engine(config());
  Client observer(engine);
  const std::string name(1U << 20U, 'n');
  const std::string short_name(512, 'n');  // the longest name of a client
  const uint64_t before = used_memory(observer);
  Client other(engine);
  other.ask({"SET", "k", "v"});
  other.ask({"LOCK", "lock", "alice", "0"});
  const auto settle = [&] {
    while (engine.next_deadline() && is_due(*engine.next_deadline(), observer.now.mono)) {
      engine.tick(observer.now, observer.fx);
    }
  };
  const auto counts = [&](const std::vector<std::vector<std::string>>& requests, size_t least) {
    INFO(requests.back()[0]);
    settle();
    const uint64_t at_first = used_memory(observer);
    Client c(engine);
    for (const auto& words : requests) {
      const std::vector<std::string_view> argv(words.begin(), words.end());
      engine.apply(c.id, argv, c.now, c.fx);
    }
    CHECK(used_memory(observer) > at_first + least);
    engine.drop(c.id, c.now, c.fx);
    settle();
    CHECK(used_memory(observer) <= at_first + (2U << 20U) + 4096);  // one buffer is kept for reuse
  };
  counts({{"MULTI"}, {"GET", name}}, name.size());
  counts({{"SUBSCRIBE", name}}, name.size());
  counts({{"PSUBSCRIBE", name}}, name.size());
  counts({{"SSUBSCRIBE", name}}, name.size());
  counts({{"WATCH", name}}, name.size());
  counts({{"ECHO", name + name + name}}, name.size());  // more than the kept buffer
  counts({{"CLIENT", "SETNAME", short_name}}, sizeof(Conn) + short_name.size());
  counts({{"HELLO", "3", "SETNAME", short_name}}, sizeof(Conn) + short_name.size());
  counts({{"CLIENT", "SETINFO", "LIB-NAME", short_name}}, sizeof(Conn) + short_name.size());
  counts({{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", name}}, name.size());
  other.ask({"LOCK", name, "bob", "0"});
  counts({{"LOCK", name, "carol", "0", "WAIT", "0"}}, name.size());
  const uint64_t unread = used_memory(observer);
  engine.record_input(other.id, 1000);
  CHECK(used_memory(observer) == unread + 1000);
  engine.record_input(other.id, 0);
  engine.record_in_flight(other.id, 100'000);
  CHECK(observer.ask({"CLIENT", "LIST"}).find("obl=16384 oll=6 omem=10") != std::string::npos);
  engine.record_in_flight(other.id, 0);
  other.ask({"CLIENT", "PAUSE", "100000", "WRITE"});
  counts({{"SET", "k", name}}, name.size());
  other.ask({"CLIENT", "UNPAUSE"});
  observer.ask({"HELLO", "3"});
  observer.ask({"CLIENT", "TRACKING", "ON"});
  const uint64_t untracked = used_memory(observer);
  observer.ask({"GET", name});
  CHECK(used_memory(observer) > untracked + name.size());
  other.ask({"FLUSHALL"});
  observer.received();
  settle();
  CHECK(used_memory(observer) < before + (6U << 20U));
}

TEST_CASE("engine: above maxmemory names are rejected, and tracked keys are forgotten") {
  Config limited = config();
  limited.limits.memory_bytes = 20U << 20U;
  Engine engine(std::move(limited));
  Client c(engine);
  for (int i = 0; i < 40; ++i) c.ask({"SET", "k" + std::to_string(i), std::string(1U << 20U, 'v')});
  const std::string name(1U << 20U, 'n');
  for (const char* command : {"WATCH", "SSUBSCRIBE", "SUBSCRIBE", "PSUBSCRIBE"}) {
    Client named(engine);
    CHECK(named.ask({command, name}).substr(0, 4) == "-OOM");
    CHECK(named.ask({command, "few"}).substr(0, 1) != "-");
  }
  Client tracker(engine);
  tracker.ask({"HELLO", "3"});
  tracker.ask({"CLIENT", "TRACKING", "ON"});
  for (int i = 0; i < 100; ++i) tracker.ask({"GET", std::to_string(i) + name});
  CHECK(engine.state().tracking.readers.empty());
}

TEST_CASE("engine: beyond maxmemory only connections above their share are ended, the largest first") {
  Config limited = config();
  limited.limits.memory_bytes = 40U << 20U;
  Engine engine(std::move(limited));
  Client c(engine);
  Client holder(engine);  // its requests are small, whatever the others do
  CHECK(holder.ask({"LOCK", "job", "bob", "0", "SESSION"}).starts_with("*2"));
  engine.record_input(holder.id, 60'000);
  std::vector<std::unique_ptr<Client>> half;
  for (size_t i = 0; i < 6; ++i) {
    half.push_back(std::make_unique<Client>(engine));
    engine.record_input(half.back()->id, (6 + i) << 20U);  // 6 to 11 MiB; the share is 4 to 5 MiB
  }
  CHECK(c.ask({"LOCK", "k", "alice", "0"}).starts_with("-OOM"));
  CHECK(engine.exceeds_share(half[0]->id));
  CHECK_FALSE(engine.exceeds_share(holder.id));
  const std::vector<ConnId> ended = engine.end_excess(c.now, c.fx);
  CHECK(ended == std::vector<ConnId>{half[5]->id, half[4]->id});  // 51 MiB, less 11, is still too much
  for (const ConnId id : ended) engine.drop(id, c.now, c.fx);
  CHECK(c.ask({"LOCK", "k", "alice", "0"}).starts_with("*2"));
  CHECK(engine.end_excess(c.now, c.fx).empty());
  CHECK_FALSE(engine.exceeds_share(half[0]->id));
}

TEST_CASE("engine: names and tracked keys leave memory for the locks of others") {
  const std::string name(16U << 10U, 'n');
  for (const char* command : {"WATCH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}) {
    CAPTURE(command);
    Config limited = config();
    limited.limits.memory_bytes = 20U << 20U;
    Engine engine(std::move(limited));
    Client c(engine);
    Client greedy(engine);
    for (int i = 0; i < 2000; ++i) greedy.ask({command, std::to_string(i) + name});
    CHECK(greedy.ask({command, name}).starts_with("-OOM"));
    CHECK(c.ask({"LOCK", "k", "alice", "0"}).starts_with("*2"));
  }
  Config limited = config();
  limited.limits.memory_bytes = 20U << 20U;
  Engine engine(std::move(limited));
  Client c(engine);
  Client tracker(engine);
  tracker.ask({"HELLO", "3"});
  tracker.ask({"CLIENT", "TRACKING", "ON"});
  for (int i = 0; i < 2000; ++i) tracker.ask({"GET", std::to_string(i) + name});
  CHECK(c.ask({"LOCK", "k", "alice", "0"}).starts_with("*2"));
}

TEST_CASE("engine: the records of one script that changes and deletes a value very often are few bytes") {
  Config with_journal = config();
  with_journal.limits.script_run_bytes = 64U << 20U;
  Engine engine(std::move(with_journal));
  engine.keep_journal();
  Client c(engine);
  const std::string value(1U << 20U, 'v');
  const auto bytes_of = [&](const std::string& steps) {
    engine.clear_journal_records();
    const std::string reply = c.ask({"EVAL", "for i = 1, 200 do " + steps + " end return 1", "0", value});
    CHECK(reply == ":1\r\n");
    return engine.journal_records().size();
  };
  CHECK(bytes_of("redis.call('APPEND', 'k', ARGV[1]) redis.call('DEL', 'k')") < 3U << 20U);
  CHECK(bytes_of("redis.call('RPUSH', 'k', ARGV[1]) redis.call('DEL', 'k')") < 70U << 20U);
  CHECK(bytes_of("redis.call('HSET', 'k', i, ARGV[1]) redis.call('HDEL', 'k', i)") < 70U << 20U);
  CHECK(bytes_of("redis.call('SADD', 'k', ARGV[1]) redis.call('SREM', 'k', ARGV[1])") < 70U << 20U);
  CHECK(bytes_of("redis.call('ZADD', 'k', i, ARGV[1]) redis.call('ZREM', 'k', ARGV[1])") < 70U << 20U);
}

TEST_CASE("engine: near maxmemory a wait for very long keys ends with -OOM, and a short one continues") {
  Config limited = config();
  limited.limits.memory_bytes = 20U << 20U;
  Engine engine(std::move(limited));
  Client c(engine);
  Client small(engine);
  CHECK(small.ask({"BLPOP", "jobs", "0"}).empty());
  Client large(engine);
  std::vector<std::string> words{"BLPOP"};
  for (int i = 0; i < 9; ++i) words.push_back(std::to_string(i) + std::string(1U << 20U, 'k'));
  words.emplace_back("0");
  CHECK(large.ask(words).empty());
  CHECK(engine.end_excess(c.now, c.fx).empty());
  CHECK(large.received().empty());
  CHECK(c.ask({"SET", "data", std::string(1'500'000, 'd')}) == "+OK\r\n");
  Client late(engine);
  CHECK(late.ask(words).starts_with("-OOM"));
  CHECK(engine.end_excess(c.now, c.fx).empty());
  CHECK(large.received().starts_with("-OOM"));
  CHECK(c.ask({"LOCK", "k", "alice", "0"}).starts_with("*2"));
  CHECK(c.ask({"RPUSH", "jobs", "1"}) == ":1\r\n");
  CHECK(small.received() == "*2\r\n$4\r\njobs\r\n$1\r\n1\r\n");
}

TEST_CASE("engine: APPEND and SETRANGE change a large value in place") {
  Engine engine(config());
  Client c(engine);
  const auto place = [&] {
    Keyspace& keys = *engine.state().dbs[0];
    return static_cast<const void*>(value_of(*keys.find(keys.key("k"))).data());
  };
  std::string expected(1U << 20U, 'x');
  c.ask({"SET", "k", expected});
  c.ask({"APPEND", "k", "y"});
  expected += "y";
  const void* const first = place();
  for (int i = 0; i < 1000; ++i) {
    c.ask({"APPEND", "k", "abc"});
    expected += "abc";
    c.ask({"SETRANGE", "k", std::to_string(i * 7), "##"});
    expected.replace(static_cast<size_t>(i) * 7, 2, "##");
  }
  CHECK(place() == first);
  c.ask({"SETRANGE", "k", std::to_string(expected.size() + 10), "end"});
  expected.append(10, '\0').append("end");
  CHECK(c.ask({"GETRANGE", "k", "0", "-1"}) ==
        "$" + std::to_string(expected.size()) + "\r\n" + expected + "\r\n");
  engine.check_invariants();
  c.ask({"DEL", "k"});
  CHECK(engine.state().dbs[0]->used_bytes() < 1000);
}

TEST_CASE("engine: a lock-delay that ends in a recovery wait keeps the invariants") {
  Engine engine(config());
  Client c(engine);
  c.ask({"LOCK", "k", "alice", "1000", "DELAY", "100"});
  c.ask({"LOCKS", "BREAK", "k"});
  const TimeMs delay_end = c.now.mono + DurationMs{100};
  engine.availability().recovering_until = delay_end + DurationMs{50};
  for (const int64_t after_ms : {0, 49, 50}) {
    CAPTURE(after_ms);
    c.now.mono = delay_end + DurationMs{after_ms};
    engine.tick(c.now, c.fx);
    engine.check_invariants();
    CHECK(c.ask({"LOCK", "k", "bob", "1000"}).starts_with(after_ms < 50 ? "-RECOVERING" : "*2"));
  }
}

TEST_CASE("engine: the journal has a large value once a loop iteration, however often it changes") {
  Engine engine(config());
  Engine twin(config());
  engine.keep_journal();
  Client c(engine);
  c.ask({"SET", "a", std::string(1U << 20U, 'x')});
  const Now now{{1000}, 1000000};
  const auto pass_on = [&] {
    const std::string records(engine.journal_records());
    CHECK(twin.replay(records, now).empty());
    engine.clear_journal_records();
    return records.size();
  };
  pass_on();
  c.ask({"MULTI"});
  for (int i = 0; i < 100; ++i) {
    c.ask({"COPY", "a", "b", "REPLACE"});
    c.ask({"SET", "c", std::to_string(i)});
  }
  c.ask({"EXEC"});
  for (int i = 0; i < 100; ++i) {
    c.ask({"EXPIRE", "a", "1000"});
    c.ask({"SET", "c", std::to_string(i)});
  }
  CHECK(pass_on() < (3U << 20U));
  c.ask({"APPEND", "b", "1"});
  c.ask({"DEL", "b"});
  c.ask({"APPEND", "a", "1"});
  c.ask({"SWAPDB", "0", "1"});
  c.ask({"FLUSHDB"});
  pass_on();
  twin.finish_loading(now);
  Client reader(twin);
  CHECK(reader.ask({"DBSIZE"}) == ":0\r\n");
  reader.ask({"SELECT", "1"});
  CHECK(reader.ask({"STRLEN", "a"}) == ":1048577\r\n");
  CHECK(reader.ask({"GET", "c"}) == "$2\r\n99\r\n");
  CHECK(reader.ask({"EXISTS", "b"}) == ":0\r\n");
}

TEST_CASE("engine: prefixes of CLIENT TRACKING are limited, and cost other clients nothing") {
  Engine engine(config());
  Client c(engine);
  c.ask({"HELLO", "3"});
  std::vector<std::string> words = {"CLIENT", "TRACKING", "ON", "BCAST"};
  for (int i = 0; i < 1001; ++i) {
    words.emplace_back("PREFIX");
    words.push_back("p" + std::to_string(10000 + i));
  }
  CHECK(c.ask(words) == "-ERR a client may name at most 1000 prefixes\r\n");
  words.resize(words.size() - 2);
  CHECK(c.ask(words) == "+OK\r\n");
  Client empty(engine);
  empty.ask({"HELLO", "3"});
  empty.ask({"CLIENT", "TRACKING", "ON", "BCAST"});
  Client longer(engine);
  longer.ask({"HELLO", "3"});
  longer.ask({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "p100005", "PREFIX", "p10000", "NOLOOP"});
  longer.ask({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "p100005", "PREFIX", "p3", "NOLOOP"});
  Client writer(engine);
  const auto notified = [&](const std::string& key) {
    writer.ask({"SET", key, "v"});
    return std::vector<bool>{!c.received().empty(), !empty.received().empty(), !longer.received().empty()};
  };
  CHECK(notified("p100005") == std::vector<bool>{true, true, true});
  CHECK(notified("p100004") == std::vector<bool>{true, true, false});
  CHECK(notified("p1000") == std::vector<bool>{false, true, false});
  CHECK(notified("p3x") == std::vector<bool>{false, true, true});
  CHECK(notified("p2") == std::vector<bool>{false, true, false});
  CHECK(notified("a") == std::vector<bool>{false, true, false});
  CHECK(notified("z") == std::vector<bool>{false, true, false});
  engine.drop(empty.id, empty.now, empty.fx);
  writer.ask({"SET", "p100009", "v"});
  CHECK_FALSE(c.received().empty());
}

TEST_CASE("engine: 10,000 waiters on one key are granted one by one in FIFO order, one reply each") {
  Engine engine(config());
  Client holder(engine);
  holder.ask({"LOCK", "k", "holder", "0"});
  std::vector<Client> waiters;
  for (int i = 0; i < 10000; ++i) {
    waiters.emplace_back(engine);
    REQUIRE(waiters.back().ask({"LOCK", "k", "w" + std::to_string(i), "0", "WAIT", "0"}).empty());
  }
  holder.ask({"UNLOCK", "k", "holder"});
  for (size_t i = 0; i < waiters.size(); ++i) {
    REQUIRE(waiters[i].received().starts_with("*2\r\n"));
    Effects& fx = waiters[i].fx;
    fx.clear();
    waiters[i].ask({"UNLOCK", "k", "w" + std::to_string(i)});
    const size_t woken = i + 1 < waiters.size() ? 1 : 0;
    REQUIRE(fx.wakes.size() == woken);
    REQUIRE(fx.dirty.size() == 1 + woken);
  }
  CHECK(holder.ask({"EXISTS", "k"}) == ":0\r\n");
}

TEST_CASE("engine: a prefetch of any requests changes nothing") {
  Engine engine(config());
  Client c(engine);
  const std::string requests =
      "*1\r\n$3\r\nFOO\r\n*1\r\n$3\r\nGET\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n*3\r\n$4\r\nEVAL\r\n$1\r\ns\r\n$"
      "1\r\n0\r\n"
      "*4\r\n$4\r\nEVAL\r\n$1\r\ns\r\n$1\r\n1\r\n$1\r\nk\r\n*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$1\r\nv\r\n$"
      "1\r\nl\r\n$1\r\nv\r\n"
      "*3\r\n$5\r\nLOCKS\r\n$5\r\nBREAK\r\n$1\r\nk\r\n*4\r\n$4\r\nLOCK\r\n$1\r\nk\r\n$1\r\no\r\n$"
      "2\r\n99\r\n"
      "*9\r\n$3\r\nDEL\r\n$1\r\nk\r\n$1\r\nl\r\n$1\r\nm\r\n$1\r\nn\r\n$1\r\no\r\n$1\r\np\r\n$1\r\nq\r\n$"
      "1\r\nr\r\n";
  RequestBatch batch;
  batch.cut(requests, engine.config().limits);
  REQUIRE(batch.size() == 9);
  engine.prefetch(c.id, batch);
  CHECK(c.ask({"DBSIZE"}) == ":0\r\n");
  // Only a large keyspace is prefetched.
  for (int i = 0; i < 2000; ++i) c.ask({"SET", "large" + std::to_string(i), std::string(2000, 'v')});
  c.ask({"SET", "k", "v"});
  c.ask({"SET", "l", "v", "PX", "100"});
  engine.prefetch(c.id, batch);
  CHECK(c.ask({"MGET", "k", "l", "m"}) == "*3\r\n$1\r\nv\r\n$1\r\nv\r\n$-1\r\n");
  engine.check_invariants();
}

TEST_CASE("commands: the table is sorted, without duplicates, and every row is complete") {
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
    CHECK(c.has(kSubcommands) == has_subcommands(c));
    CHECK((c.handler != nullptr || c.has(kSubcommands)));
    // Flags that say more about another flag.
    if (c.has(kPatterns)) CHECK(c.has(kSubscribes));
    if (c.has(kCountsPairs)) CHECK(c.has(kMovableKeys));
    if (c.has(kScriptText | kFunctionName)) CHECK(c.has(kScript));
  }
  CHECK(find_command("LoCk") == find_command("lock"));
  CHECK(find_command("locks|INFO") != nullptr);
  CHECK(find_command("lockx") == nullptr);
  CHECK(find_command(std::string(1000, 'x')) == nullptr);
}

}  // namespace holdfast
