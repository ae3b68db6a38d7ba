// Records of changes are replayed on values that a snapshot or other options gave another form: no record
// relies on the form of a value. And records of libraries that were replaced at once.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/checksum.h"
#include "core/engine/engine_parts.h"
#include "core/persist/load_snapshot.h"
#include "core/persist/snapshot.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

using Words = std::vector<std::string>;

std::string taken(Engine& engine) {
  std::string records(engine.journal_records());
  engine.clear_journal_records();
  return records;
}

std::string snapshot_of(Engine& engine) {
  Snapshot snapshot(engine.state(), session_time(0), 1, true);
  while (!snapshot.step()) {
  }
  std::string bytes = snapshot.bytes();
  append_crc(bytes, crc64(0, bytes));
  return bytes;
}

void load(Engine& engine, const std::string& file) {
  Restore restore(engine.state(), session_time(0), false);
  REQUIRE(restore.feed(file));
  REQUIRE(restore.finish());
}

Words many(const std::string& command, const std::string& key, int from, int to, bool pairs) {
  Words words = {command, key};
  for (int i = from; i < to; ++i) {
    if (pairs && command == "ZADD") words.push_back(std::to_string(i));
    words.push_back("m" + std::to_string(i));
    if (pairs && command == "HSET") words.emplace_back("x");
  }
  return words;
}

// A value whose live form is large, although its content is small.
struct Shrunk {
  std::string name;
  std::vector<Words> made;
  std::vector<Words> changes;
};

const std::string kLong(3000, 'v');

std::vector<Words> hash_changes() {
  return {{"EXPIRE", "h", "1000"},
          {"PERSIST", "h"},
          {"HSET", "h", "m1", "y", "new", "z"},
          {"HSET", "h", "m1", "z"},
          {"HINCRBY", "h", "n", "3"},
          {"HPEXPIRE", "h", "500", "FIELDS", "1", "m1"},
          {"HPERSIST", "h", "FIELDS", "1", "m1"},
          {"EXPIRE", "h", "500"},
          {"HDEL", "h", "m1", "m2"},
          {"RENAME", "h", "moved"},
          {"EXPIRE", "moved", "400"},
          {"COPY", "moved", "h"},
          {"EXPIRE", "h", "300"},
          {"HDEL", "h", "m0", "new", "n"}};
}

std::vector<Shrunk> shrunk_values() {
  return {
      {"a hash whose field had a deadline",
       {{"HSET", "h", "m0", "v", "m1", "w"},
        {"HEXPIRE", "h", "100", "FIELDS", "1", "m0"},
        {"HPERSIST", "h", "FIELDS", "1", "m0"}},
       hash_changes()},
      {"a hash that had many fields",
       {many("HSET", "h", 0, 600, true), many("HDEL", "h", 5, 600, false)},
       hash_changes()},
      {"a hash that had a long value",
       {{"HSET", "h", "m0", "v", "m1", "w", "long", kLong}, {"HDEL", "h", "long"}},
       hash_changes()},
      {"a list",
       {many("RPUSH", "l", 0, 3000, false), {"RPUSH", "l", kLong}, {"LTRIM", "l", "0", "4"}},
       {{"EXPIRE", "l", "1000"},
        {"LPUSH", "l", "a"},
        {"LSET", "l", "1", "b"},
        {"LINSERT", "l", "AFTER", "b", "c"},
        {"LREM", "l", "0", "m2"},
        {"RENAME", "l", "moved"},
        {"LPOP", "moved", "2"}}},
      {"a set",
       {many("SADD", "s", 0, 600, false), {"SADD", "s", "1", "2"}, many("SREM", "s", 0, 600, false)},
       {{"EXPIRE", "s", "1000"},
        {"SADD", "s", "3", "x"},
        {"SREM", "s", "1", "x"},
        {"SMOVE", "s", "t", "2"}}},
      {"a sorted set",
       {many("ZADD", "z", 0, 600, true), {"ZADD", "z", "1000", kLong}, {"ZREMRANGEBYRANK", "z", "5", "-1"}},
       {{"EXPIRE", "z", "1000"},
        {"ZADD", "z", "7", "m1", "8", "new"},
        {"ZPOPMIN", "z", "2"},
        {"ZREM", "z", "m1"},
        {"ZINCRBY", "z", "2", "new"}}},
      {"a string",
       {{"SET", "t", kLong}, {"SET", "t", "short"}},
       {{"EXPIRE", "t", "1000"},
        {"APPEND", "t", "er"},
        {"SETRANGE", "t", "2500", "x"},
        {"RENAME", "t", "u"}}},
      {"a long string",
       {{"SET", "t", std::string(9000, 't')}, {"SET", "u", "short"}},
       {{"EXPIRE", "t", "1000"},
        {"APPEND", "t", "er"},
        {"SETRANGE", "t", "20000", "x"},
        {"SETRANGE", "t", "3", "yz"},
        {"RENAME", "t", "u"},
        {"PERSIST", "u"},
        {"GETEX", "u", "EX", "50"},
        {"LOCKS", "INFO", "u"},
        {"RENAMENX", "u", "t"},
        {"SETRANGE", "u", "100000", "new"},
        {"APPEND", "u", "more"}}}};
}

std::vector<Config> other_options() {
  Config small = session_config();
  small.limits.hash_packed_entries = 1;
  small.limits.set_intset_entries = 0;
  small.limits.zset_packed_entries = 0;
  Config large = session_config();
  large.hash_seed = 11;
  large.limits.hash_packed_entries = 5000;
  large.limits.hash_packed_value_bytes = 5000;
  large.limits.zset_packed_entries = 5000;
  return {session_config(), small, large};
}

Words load_library(const std::string& name, const std::vector<std::string>& functions) {
  std::string code = "#!lua name=" + name + "\n";
  for (const std::string& f : functions)
    code.append("redis.register_function('").append(f).append("', function() return 1 end)\n");
  return {"FUNCTION", "LOAD", "REPLACE", code};
}

std::string bulk(const std::string& reply) {
  const size_t end = reply.find("\r\n");
  return reply.substr(end + 2, reply.size() - end - 4);
}

// Two libraries, of which the second one has taken over a function of the first; `policy` brings the
// first state back. The records are replayed in one engine, and in one that loads a snapshot.
void check_restored_libraries(const std::string& policy) {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  c.must(load_library("A", {"x"}));
  c.must(load_library("B", {"z"}));
  const std::string payload = bulk(c.ask({"FUNCTION", "DUMP"}));
  const std::vector<Words> then = {
      policy == "APPEND" ? Words{"FUNCTION", "FLUSH"} : load_library("A", {"w"}),
      load_library(policy == "APPEND" ? "C" : "B", {policy == "APPEND" ? "y" : "x"}),
      {"FUNCTION", "RESTORE", payload, policy}};
  std::vector<std::string> frames = {taken(engine)};
  const std::string file = snapshot_of(engine);
  for (const Words& words : then) {
    c.must(words);
    frames.push_back(taken(engine));
  }
  engine.check_invariants();
  for (const std::string name : {"x", "z"}) CHECK(c.ask({"FCALL", name, "0"}) == ":1\r\n");
  const std::string live = state_text(engine, session_time(0));
  for (const bool from_file : {false, true}) {
    CAPTURE(from_file);
    Engine again(session_config());
    if (from_file) load(again, file);
    for (size_t i = from_file ? 1 : 0; i < frames.size(); ++i)
      CHECK(again.replay(frames[i], session_time(0)) == "");
    CHECK(state_text(again, session_time(0)) == live);
  }
  Engine at_once(session_config());
  std::string all;
  for (const std::string& frame : frames) all += frame;
  CHECK(at_once.replay(all, session_time(0)) == "");
  CHECK(state_text(at_once, session_time(0)) == live);
}

}  // namespace

TEST_CASE("replay: no record relies on the form of a value that a snapshot or other options changed") {
  for (const Shrunk& value : shrunk_values()) {
    CAPTURE(value.name);
    Engine engine(session_config());
    engine.keep_journal();
    TestClient c(engine);
    for (const Words& words : value.made) c.must(words);
    taken(engine);
    const std::string file = snapshot_of(engine);
    std::vector<std::string> frames;
    for (const Words& words : value.changes) {
      CAPTURE(words[0]);
      c.must(words);
      frames.push_back(taken(engine));
      const std::string live = state_text(engine, session_time(0));
      for (const Config& config : other_options()) {
        Engine again(config);
        load(again, file);
        for (const std::string& frame : frames) REQUIRE(again.replay(frame, session_time(0)) == "");
        CHECK(state_text(again, session_time(0)) == live);
        again.finish_loading(session_time(0));
        again.check_invariants();
      }
    }
  }
}

// The records of changes, replayed on a state that lacks what they rely on.
TEST_CASE("replay: a record that does not fit the state is damage") {
  const std::string large(9000, 't');
  const std::vector<std::vector<Words>> cases = {
      {{"SET", "t", large}, {"APPEND", "t", "x"}},
      {{"SET", "t", large}, {"SETRANGE", "t", "3", "x"}},
      {{"SET", "t", large}, {"PEXPIRE", "t", "5000"}},
      {{"SET", "t", large}, {"RENAME", "t", "u"}},
      {{"SET", "t", large}, {"COPY", "t", "u"}},
      {{"LEASE", "GRANT", "l1", "5000", "k", "v"}, {"LEASE", "RENEW", "l1"}}};
  for (const std::vector<Words>& words : cases) {
    CAPTURE(words[1][0]);
    Engine engine(session_config());
    engine.keep_journal();
    TestClient c(engine);
    c.must(words[0]);
    taken(engine);
    c.must(words[1]);
    const std::string change = taken(engine);
    Engine without(session_config());
    CHECK(without.replay(change, session_time(0)) != "");
  }
  // A string of another size.
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  c.must({"SET", "t", large});
  const std::string first = taken(engine);
  c.must({"APPEND", "t", "x"});
  taken(engine);
  c.must({"SETRANGE", "t", "3", "x"});
  const std::string third = taken(engine);
  Engine again(session_config());
  REQUIRE(again.replay(first, session_time(0)) == "");
  CHECK(again.replay(third, session_time(0)) != "");
}

TEST_CASE("replay: libraries that FUNCTION RESTORE replaced at once are there again") {
  check_restored_libraries("REPLACE");
}

TEST_CASE("replay: libraries that FUNCTION RESTORE added, or put in place of all others, are there again") {
  check_restored_libraries("FLUSH");
  check_restored_libraries("APPEND");
}

TEST_CASE("replay: lock-delays are saved in the order of the databases as clients number them") {
  Engine engine(session_config());
  TestClient c(engine);
  c.must({"LOCK", "a", "alice", "0", "DELAY", "5000"});
  c.must({"LOCKS", "BREAK", "a"});
  c.must({"SELECT", "2"});
  c.must({"LOCK", "b", "alice", "0", "DELAY", "5000"});
  c.must({"LOCKS", "BREAK", "b"});
  c.must({"SWAPDB", "0", "2"});
  Engine again(session_config());
  load(again, snapshot_of(engine));
  CHECK(state_text(again, session_time(0)) == state_text(engine, session_time(0)));
}

}  // namespace holdfast
