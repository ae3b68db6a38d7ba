// Small parts of the core, each with its own promises: fibers, watches, the command log, the letters of
// events, expiry words, small blocks, SHA-1.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/block_pool.h"
#include "core/base/event_flags.h"
#include "core/base/fiber.h"
#include "core/base/sha1.h"
#include "core/command/command.h"
#include "core/command/command_log.h"
#include "core/handlers/expire_words.h"
#include "core/state/conn.h"
#include "core/state/watches.h"

namespace holdfast {

TEST_CASE("fiber: a task that does not pause ends in start(), and may be started again") {
  int runs = 0;
  Fiber fiber([&] { ++runs; });
  CHECK_FALSE(fiber.under_way());
  CHECK(fiber.start());
  CHECK_FALSE(fiber.under_way());
  CHECK(fiber.start());
  CHECK(runs == 2);
}

TEST_CASE("fiber: a task that pauses resumes at the same place, with its own variables") {
  std::vector<int> seen;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    for (int i = 0; i < 3; ++i) {
      seen.push_back(i);
      self->pause();
    }
  });
  self = &fiber;
  CHECK_FALSE(fiber.start());
  CHECK(fiber.under_way());
  CHECK(seen == std::vector{0});
  CHECK_FALSE(fiber.resume());
  CHECK_FALSE(fiber.resume());
  CHECK(seen == std::vector{0, 1, 2});
  CHECK(fiber.resume());
  CHECK_FALSE(fiber.under_way());
}

TEST_CASE("fiber: two fibers have separate stacks") {
  std::string said;
  Fiber* first = nullptr;
  Fiber* second = nullptr;
  Fiber a([&] {
    const std::string mine = "a";
    first->pause();
    said += mine;
  });
  Fiber b([&] {
    const std::string mine = "b";
    second->pause();
    said += mine;
  });
  first = &a;
  second = &b;
  CHECK_FALSE(a.start());
  CHECK_FALSE(b.start());
  CHECK(a.resume());
  CHECK(b.resume());
  CHECK(said == "ab");
}

TEST_CASE("watches: a change breaks all watches of the key, only in its database") {
  ConnTable conns;
  Watches watches;
  Conn& a = conns.open();
  Conn& b = conns.open();
  watches.add(a, 0, "k");
  watches.add(b, 1, "k");
  watches.break_key(conns, 0, "other");
  CHECK_FALSE(a.watch_broken);
  watches.break_key(conns, 0, "k");
  CHECK(a.watch_broken);
  CHECK_FALSE(b.watch_broken);
}

TEST_CASE("watches: a key watched twice counts once, and clear() removes all") {
  ConnTable conns;
  Watches watches;
  Conn& a = conns.open();
  CHECK(watches.empty());
  watches.add(a, 0, "k");
  watches.add(a, 0, "k");
  watches.add(a, 0, "j");
  CHECK(a.watched.size() == 2);
  watches.break_key(conns, 0, "j");
  watches.clear(a);
  CHECK(watches.empty());
  CHECK(a.watched.empty());
  CHECK_FALSE(a.watch_broken);
  watches.break_key(conns, 0, "k");
  CHECK_FALSE(a.watch_broken);
}

TEST_CASE("watches: break_db() breaks the watches of concerned keys; swap_dbs() moves watches along") {
  ConnTable conns;
  Watches watches;
  Conn& a = conns.open();
  Conn& b = conns.open();
  watches.add(a, 0, "here");
  watches.add(b, 0, "gone");
  watches.break_db(conns, 0, [](const std::string& key) { return key == "here"; });
  CHECK(a.watch_broken);
  CHECK_FALSE(b.watch_broken);
  watches.swap_dbs(0, 3);
  watches.break_key(conns, 0, "gone");
  CHECK_FALSE(b.watch_broken);
  watches.break_key(conns, 3, "gone");
  CHECK(b.watch_broken);
}

TEST_CASE("command log: one in 64 of the cheap calls is timed, of the others each") {
  CommandLog log;
  const Command& get = *find_command("get");
  const Command& keys = *find_command("keys");
  int timed = 0;
  for (int i = 0; i < 128; ++i) timed += log.begin(get) ? 1 : 0;
  CHECK(timed == 2);
  for (int i = 0; i < 3; ++i) CHECK(log.begin(keys));
  CHECK(log.counts_of(get).calls == 128);
  CHECK(log.counts_of(keys).calls == 3);
}

TEST_CASE("command log: the time of all calls is estimated from the timed ones") {
  CommandLog log;
  const Command& get = *find_command("get");
  CHECK(log.counts_of(get).us() == 0);
  for (int i = 0; i < 10; ++i) log.begin(get);
  log.record_time(get, 4, true);
  log.record_time(get, 8, false);
  CHECK(log.counts_of(get).us_per_call() == doctest::Approx(6));
  CHECK(log.counts_of(get).us() == 60);
  CHECK(log.counts_of(get).histogram.calls() == 1);
}

TEST_CASE("time histogram: a percentile is the end of a quarter of a power of two, and never too low") {
  for (const auto& [time, end] : {std::pair<uint64_t, uint64_t>(0, 1),
                                  {1, 2},
                                  {3, 4},
                                  {4, 5},
                                  {7, 8},
                                  {8, 10},
                                  {9, 10},
                                  {10, 12},
                                  {15, 16},
                                  {16, 20},
                                  {1000, 1024},
                                  {1023, 1024},
                                  {1024, 1280},
                                  {UINT64_MAX, uint64_t{1} << 32U}}) {
    const uint64_t us = time;  // clang 14 cannot capture `time`
    INFO(us);
    TimeHistogram times;
    times.add(us);
    CHECK(times.percentile_us(0) == end);
    CHECK(times.percentile_us(50) == end);
    CHECK(times.percentile_us(100) == end);
    const auto powers = times.by_power();
    CHECK(powers[std::min<size_t>(static_cast<size_t>(std::bit_width(us)), powers.size() - 1)] == 1);
  }
}

TEST_CASE("time histogram: percentiles below, at and above a call's share") {
  TimeHistogram times;
  CHECK(times.percentile_us(99) == 0);
  for (int i = 0; i < 99; ++i) times.add(1);
  times.add(1000);
  CHECK(times.calls() == 100);
  CHECK(times.percentile_us(98.9) == 2);
  CHECK(times.percentile_us(99) == 2);
  CHECK(times.percentile_us(99.1) == 1024);
}

TEST_CASE(
    "command log: slow commands are kept newest first; the oldest are evicted, and numbers not reused") {
  CommandLog log;
  for (int64_t us = 1; us <= 3; ++us) log.keep_slow({.us = us, .argv = {}, .peer = "", .name = ""}, 2);
  REQUIRE(log.slow().size() == 2);
  CHECK(log.slow()[0].us == 3);
  CHECK(log.slow()[0].id == 2);
  CHECK(log.slow()[1].id == 1);
  log.forget_slow();
  log.keep_slow({}, 2);
  CHECK(log.slow()[0].id == 3);
}

TEST_CASE(
    "command log: latency keeps the largest of each second, 160 seconds, and the largest of all time") {
  CommandLog log;
  log.record_latency("command", 1, 5);
  log.record_latency("command", 1, 9);
  log.record_latency("command", 1, 7);
  const LatencyEvent& event = log.latency().at("command");
  REQUIRE(event.samples.size() == 1);
  CHECK(event.samples[0].ms == 9);
  for (int64_t at = 2; at <= 160; ++at) log.record_latency("command", at, 1);
  CHECK(event.samples.size() == 160);
  CHECK(event.samples.front().at_s == 1);
  log.record_latency("command", 161, 1);
  CHECK(event.samples.size() == 160);
  CHECK(event.samples.front().at_s == 2);
  CHECK(event.max_ms == 9);
}

TEST_CASE("command log: errors are counted by code, for at most 128 codes") {
  CommandLog log;
  const Command& get = *find_command("get");
  log.record_failure(get, "-WRONGTYPE Operation against\r\n", false);
  log.record_rejection(&get, "-ERR wrong\r\n");
  log.record_rejection(nullptr, "-ERR unknown\r\n");
  log.record_failure(get, "-BARE\r\n", false);
  CHECK(log.errors().at("ERR") == 3);  // one error has no blank, and so no code
  CHECK(log.errors().at("WRONGTYPE") == 1);
  CHECK(log.counts_of(get).failed == 2);
  CHECK(log.counts_of(get).rejected == 1);
  for (int i = 0; i < 200; ++i) log.record_rejection(nullptr, "-X" + std::to_string(i) + " no\r\n");
  CHECK(log.errors().size() == CommandLog::kMaxErrorCodes);
  log.record_rejection(nullptr, "-ERR unknown\r\n");
  log.record_failure(get, "-ERR counted before\r\n", true);
  CHECK(log.all_errors() == 205);
  CHECK(log.errors().at("ERR") == 4);
  log.reset_counts();
  CHECK(log.errors().empty());
  CHECK(log.counts_of(get).failed == 0);
}

TEST_CASE("event flags: each letter is parsed and formatted; other letters are rejected") {
  for (const char letter : std::string("g$lshzxetdnKEm")) {
    const auto flags = parse_event_flags(std::string(1, letter));
    REQUIRE(flags);
    CHECK(event_flags_text(*flags) == std::string(1, letter));
  }
  CHECK(parse_event_flags("") == 0U);
  CHECK(event_flags_text(0).empty());
  CHECK_FALSE(parse_event_flags("KQ"));
  CHECK_FALSE(parse_event_flags("a"));
}

TEST_CASE("event flags: A means all classes, and is shown for them; K, E and m are separate") {
  CHECK(event_flags_text(*parse_event_flags("KEA")) == "AKE");
  CHECK(event_flags_text(*parse_event_flags("g$lshzxetd")) == "A");
  CHECK(event_flags_text(*parse_event_flags("Amn")) == "Am");
  CHECK(event_flags_text(*parse_event_flags("xEg")) == "gxE");
}

TEST_CASE("expiry words: are found in any case, with unit and kind") {
  REQUIRE(find_expiry_word("ex") != nullptr);
  CHECK(find_expiry_word("ex")->unit_ms == 1000);
  CHECK_FALSE(find_expiry_word("PX")->absolute);
  CHECK(find_expiry_word("pxAt")->absolute);
  CHECK(find_expiry_word("EXAT")->unit_ms == 1000);
  CHECK(find_expiry_word("") == nullptr);
  CHECK(find_expiry_word("EXX") == nullptr);
}

TEST_CASE("block pool: blocks of all sizes do not overlap and can be freed") {
  BlockPool pool;
  struct Block {
    void* at;
    size_t bytes;
  };
  std::vector<Block> blocks;
  for (const size_t bytes : {size_t{1}, size_t{16}, size_t{17}, BlockPool::kMaxBytes - 1,
                             BlockPool::kMaxBytes, BlockPool::kMaxBytes + 1, size_t{100000}}) {
    for (int i = 0; i < 100; ++i) {
      void* block = pool.take(bytes);
      REQUIRE(block != nullptr);
      std::memset(block, static_cast<int>(blocks.size() % 251), bytes);
      blocks.push_back({block, bytes});
    }
  }
  bool whole = true;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].at);
    whole = whole && bytes[0] == i % 251 && bytes[blocks[i].bytes - 1] == i % 251;
  }
  CHECK(whole);
  for (const Block& b : blocks) pool.give(b.at, b.bytes);
}

TEST_CASE("sha1: gives the examples of the standard, also for binary bytes") {
  CHECK(sha1_hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(sha1_hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  CHECK(sha1_hex(std::string(1, '\0')) == "5ba93c9db0cff93f52b521d7420e43f6eda2784f");
}

}  // namespace holdfast
