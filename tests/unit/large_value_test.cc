// Large values in a snapshot: they are written in parts, and the file has the state of the begin, whatever
// clients change meanwhile. And the removal of large values, in parts too.
#include "core/persist/large_value.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/base/checksum.h"
#include "core/persist/load_snapshot.h"
#include "core/persist/snapshot.h"
#include "core/state/memory_use.h"
#include "part.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

using Words = std::vector<std::string>;

void fill(TestClient& c, const std::string& command, const std::string& key, size_t elements) {
  const bool hash = command == "HSET";
  const bool zset = command == "ZADD";
  for (size_t i = 0; i < elements;) {
    Words words = {command, key};
    for (const size_t end = std::min(i + 500, elements); i < end; ++i) {
      if (zset) words.push_back(std::to_string(i % 50));
      words.push_back("element-" + std::to_string(i));
      if (hash) words.push_back("value-" + std::to_string(i));
    }
    c.must(words);
  }
}

std::string state_in(std::string file) {
  append_crc(file, crc64(0, file));
  Engine again(session_config());
  Restore restored(again.state(), session_time(0), false);
  CHECK(restored.feed(file));
  CHECK(restored.finish());
  CHECK(restored.error().empty());
  return state_text(again, session_time(0));
}

void free_all(Engine& engine) {
  Effects fx;
  while (engine.next_deadline() && engine.next_deadline()->count == 0) engine.tick(session_time(0), fx);
}

Words random_change_of_list(std::mt19937_64& random, const std::string& key) {
  const std::string place = std::to_string(random() % 1500);
  const std::string element = "element-" + place;
  switch (random() % 7) {
    case 0:
      return {"LPOP", key, "100"};
    case 1:
      return {"RPUSH", key, element, "new-" + element};
    case 2:
      return {"LPUSH", key, element, std::string(5000, 'v')};
    case 3:
      return {"LREM", key, "0", element};
    case 4:
      return {"LINSERT", key, "BEFORE", element, "new"};
    case 5:
      return {"LTRIM", key, "1", "-2"};
    default:
      return {"LSET", key, place, "changed"};
  }
}

// A random change of one of a few large values, or of a small key.
Words random_change(std::mt19937_64& random) {
  const auto below = [&random](uint64_t n) { return random() % n; };
  const std::string key = "large" + std::to_string(below(6));
  const std::string other = "large" + std::to_string(below(6));
  const std::string element = "element-" + std::to_string(below(4000));
  const bool set = key == "large3";
  const bool zset = key == "large4";
  switch (below(24)) {
    case 0:
      return {"DEL", key};
    case 1:
      return {"SET", key, "overwritten"};
    case 2:
      return {"RENAME", key, other};
    case 3:
      return {"COPY", key, other, "REPLACE"};
    case 4:
      return {"PEXPIRE", key, std::to_string(1 + below(3) * 100000)};
    case 5:
      return {"SWAPDB", "0", "9"};
    case 6:
      return {"FLUSHDB"};
    case 7:
      return {"SELECT", below(2) == 0 ? "0" : "9"};
    case 8:
      return {"LOCK", "small" + std::to_string(below(9)), "owner", "1000"};
    case 9:
      if (zset) return {"ZREMRANGEBYRANK", key, std::to_string(below(1000)), std::to_string(below(1000))};
      return {set ? "SMEMBERS" : "HGETALL", key};
    case 10:
    case 11:
      return {"SET", "small" + std::to_string(below(9)), element};
    default:
      if (zset && below(3) == 0) return {"ZREM", key, element, "element-7"};
      if (zset) return {"ZADD", key, std::to_string(below(99)), element, "1.5", "new-" + element};
      if (key == "large5") return random_change_of_list(random, key);
      if (below(3) == 0) return {set ? "SREM" : "HDEL", key, element, "element-7"};
      if (set) return {"SADD", key, element, "new-" + element};
      return {"HSET", key, element, std::string(below(30), 'v'), "new-" + element, "new"};
  }
}

TEST_CASE("large value: changes between the steps of a snapshot change nothing in it") {
  const uint64_t first = seed_of_run();
  const uint64_t seeds = is_thorough() ? 30 : 2;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Engine engine(session_config());
    TestClient c(engine);
    c.at(session_time(0));
    for (int i = 0; i < 9; ++i) c.must({"SET", "small" + std::to_string(i), "before"});
    fill(c, "HSET", "large0", 1000);
    fill(c, "HSET", "large1", 3000);
    fill(c, "SADD", "large3", 2500);
    fill(c, "ZADD", "large4", 2000);
    fill(c, "RPUSH", "large5", 2500);
    c.must({"SELECT", "9"});
    fill(c, "HSET", "large2", 1500);
    c.must({"PEXPIRE", "large2", "70000"});
    const std::string before = state_text(engine, session_time(0));
    Snapshot snapshot(engine.state(), session_time(0), 1, false);
    const uint64_t every = 1 + random() % 30;
    for (uint64_t steps = 1; !snapshot.step(); ++steps) {
      if (steps < 4000 && steps % 50 != 0) continue;  // rarely before the first large value
      for (uint64_t i = 0; i < every; ++i) c.ask(random_change(random));
      engine.check_invariants();
    }
    CHECK(snapshot.saved() == snapshot.keys());
    CHECK(state_in(snapshot.bytes()) == before);
  }
}

TEST_CASE("large value: a change before its first step, and one in each of its steps, change nothing") {
  Engine engine(session_config());
  TestClient c(engine);
  c.at(session_time(0));
  const int elements = is_thorough() ? 5000 : 2000;
  fill(c, "HSET", "h", elements);
  fill(c, "SADD", "s", elements);
  fill(c, "ZADD", "z", elements);
  const std::string before = state_text(engine, session_time(0));
  Snapshot snapshot(engine.state(), session_time(0), 1, false);
  int i = 0;
  do {
    for (int n = 0; n < (is_thorough() ? 20 : 4); ++n, ++i) {
      const std::string number = std::to_string(i % elements);
      c.ask({i % 3 == 0 ? "HDEL" : "HSET", "h", "element-" + number, "changed"});
      c.must({"HSET", "h", "more-" + number, "v", "element-" + number, "again"});
      c.must({"SREM", "s", "element-" + number});
      c.must({"SADD", "s", "element-" + number, "more-" + number});
      c.must({"ZADD", "z", "-1", "element-" + number, "2", "more-" + number});
      c.must({"ZPOPMAX", "z"});
    }
  } while (!snapshot.step());
  CHECK(state_in(snapshot.bytes()) == before);
}

TEST_CASE("large value: what waits for the snapshot counts as used memory, and waits once") {
  Engine engine(session_config());
  TestClient c(engine);
  c.at(session_time(0));
  for (const char* command : {"HSET", "SADD", "ZADD"}) fill(c, command, command, 20000);
  for (int i = 0; i < 5000; ++i) c.must({"SET", "small" + std::to_string(i), std::string(100, 'v')});
  const std::string before = state_text(engine, session_time(0));
  const auto waiting = [&engine] { return engine.state().memory.snapshot_bytes; };
  size_t whole_bytes = 0;
  {
    Snapshot whole(engine.state(), session_time(0), 1, false);
    while (!whole.step()) {
    }
    CHECK(waiting() == 0);
    whole_bytes = whole.bytes().size();
  }
  Snapshot snapshot(engine.state(), session_time(0), 1, false);
  const auto change_all = [&c](const std::string& to) {
    for (int i = 0; i < 20000; ++i) {
      const std::string element = "element-" + std::to_string(i);
      c.must({"HSET", "HSET", element, to});
      c.must({"SREM", "SADD", element});
      c.must({"SADD", "SADD", element});
      c.must({"ZADD", "ZADD", to, element});
    }
    for (int i = 0; i < 5000; ++i) c.must({"SET", "small" + std::to_string(i), to});
  };
  change_all("1");
  const uint64_t once = waiting();
  CHECK(once > 500000);
  CHECK(once < 2 * whole_bytes);  // a piece may have twice the memory of its bytes
  CHECK(used_memory_bytes(engine.state()) > once);
  for (const char* to : {"2", "3"}) change_all(to);
  CHECK(waiting() == once);
  while (!snapshot.step()) {
  }
  CHECK(waiting() == 0);
  CHECK(state_in(snapshot.bytes()) == before);
}

TEST_CASE("large value: the waiting bytes of a cancelled snapshot are freed") {
  Engine engine(session_config());
  TestClient c(engine);
  c.at(session_time(0));
  fill(c, "HSET", "h", 20000);
  {
    const Snapshot cancelled(engine.state(), session_time(0), 1, false);
    fill(c, "HSET", "h", 20000);
    CHECK(engine.state().memory.snapshot_bytes > 0);
  }
  CHECK(engine.state().memory.snapshot_bytes == 0);
}

TEST_CASE("large value: from 1,000 elements on, a snapshot writes it in parts") {
  for (const char* command : {"HSET", "SADD", "RPUSH"}) {
    for (const size_t elements : {999U, 1000U, 1001U, 60000U}) {
      CAPTURE(command);
      CAPTURE(elements);
      Engine engine(session_config());
      TestClient c(engine);
      c.at(session_time(0));
      fill(c, command, "v", elements);
      const std::string before = state_text(engine, session_time(0));
      Snapshot snapshot(engine.state(), session_time(0), 1, false);
      size_t largest = 0;
      size_t steps = 0;  // that wrote something
      for (bool done = false; !done;) {
        const size_t size = snapshot.bytes().size();
        done = snapshot.step();
        largest = std::max(largest, snapshot.bytes().size() - size);
        steps += snapshot.bytes().size() > size ? 1 : 0;
      }
      CHECK(largest < 40000);
      CHECK(steps >= (elements < 1000 ? 1 : elements / 256));
      CHECK(state_in(snapshot.bytes()) == before);
    }
  }
}

TEST_CASE("large value: a snapshot that follows a cancelled one is complete") {
  for (const int steps : {0, 4097, 4100, 4110, 1000000}) {
    CAPTURE(steps);
    Engine engine(session_config());
    TestClient c(engine);
    c.at(session_time(0));
    fill(c, "HSET", "h", 5000);
    {
      Snapshot first(engine.state(), session_time(0), 1, false);
      c.must({"HSET", "h", "element-17", "changed"});
      for (int i = 0; i < steps && !first.step(); ++i) {
      }
      c.must({"HSET", "h", "element-18", "changed", "new", "v"});
    }
    const std::string before = state_text(engine, session_time(0));
    Snapshot snapshot(engine.state(), session_time(0), 1, false);
    c.must({"HSET", "h", "element-19", "changed"});
    while (!snapshot.step()) {
    }
    CHECK(state_in(snapshot.bytes()) == before);
  }
}

TEST_CASE("large value: it is freed in parts, and counts as used memory until then") {
  const std::vector<Words> removals = {
      {"DEL", "v"}, {"SET", "v", "x"}, {"RENAME", "small", "v"}, {"FLUSHALL"}, {"PEXPIRE", "v", "0"}};
  for (const char* command : {"HSET", "SADD", "ZADD"}) {
    for (const Words& removal : removals) {
      CAPTURE(removal[0]);
      Engine engine(session_config());
      TestClient c(engine);
      c.at(session_time(0));
      c.must({"SET", "small", "x"});
      const uint64_t empty = used_memory_bytes(engine.state());
      fill(c, command, "v", 20000);
      const uint64_t full = used_memory_bytes(engine.state());
      c.must(removal);
      CHECK(used_memory_bytes(engine.state()) > full - (full - empty) / 10);
      int ticks = 0;
      Effects fx;
      for (; engine.next_deadline() && engine.next_deadline()->count == 0; ++ticks)
        engine.tick(session_time(0), fx);
      CHECK(ticks >= 20000 / 512);
      CHECK(used_memory_bytes(engine.state()) < empty + 50000);
    }
  }
}

TEST_CASE("large value: a removed value is freed after the snapshot that needs it") {
  Engine engine(session_config());
  TestClient c(engine);
  c.at(session_time(0));
  fill(c, "HSET", "h", 5000);
  const uint64_t full = used_memory_bytes(engine.state());
  const std::string before = state_text(engine, session_time(0));
  {
    Snapshot snapshot(engine.state(), session_time(0), 1, false);
    c.must({"DEL", "h"});
    free_all(engine);
    CHECK(used_memory_bytes(engine.state()) > full - 10000);
    while (!snapshot.step()) {
    }
    CHECK(state_in(snapshot.bytes()) == before);
  }
  free_all(engine);
  CHECK(engine.state().removed.bytes() == 0);
  CHECK(used_memory_bytes(engine.state()) < full / 2);
}

}  // namespace
}  // namespace holdfast
