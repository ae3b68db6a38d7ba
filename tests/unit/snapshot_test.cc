// A snapshot is the state of one moment, whatever happens while it is written. Loading it restores that
// state.
#include "core/persist/snapshot.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/checksum.h"
#include "core/persist/load_snapshot.h"
#include "part.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

std::string ended(std::string bytes) {
  append_crc(bytes, crc64(0, bytes));
  return bytes;
}

std::string snapshot_of(Engine& engine, Now now, uint64_t journal = 1) {
  Snapshot snapshot(engine.state(), now, journal, false);
  while (!snapshot.step()) {
  }
  CHECK(snapshot.saved() == snapshot.keys());
  return ended(snapshot.bytes());
}

// Restores the file. Returns the error; empty if it succeeds.
std::string restore(Engine& engine, std::string_view file, Now now, size_t piece = SIZE_MAX) {
  Restore restored(engine.state(), now, false);
  for (size_t at = 0; at < file.size(); at += std::min(piece, file.size() - at)) {
    if (!restored.feed(file.substr(at, piece))) return restored.error();
  }
  return restored.finish() ? std::string() : restored.error();
}

// Ends loading, after success or failure.
void finish_restore(Engine& engine, Now now) {
  engine.finish_loading(now);
  engine.check_invariants();
}

// Returns the token in a reply to LOCK.
uint64_t token_in(const std::string& reply) {
  const size_t at = reply.rfind(':');
  REQUIRE(at != std::string::npos);
  return std::stoull(reply.substr(at + 1));
}

// Adds items of every kind. Returns the client that keeps the SESSION holds alive.
std::unique_ptr<TestClient> fill(Engine& engine) {
  auto c = std::make_unique<TestClient>(engine);
  c->must({"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)"});
  c->must({"SET", "plain", "value"});
  c->must({"SET", "empty", ""});
  c->must({"SET", "timed", "value", "PX", "5000"});
  c->must({"SET", "number", "-12345"});
  c->must({"LOCK", "exclusive", "alice", "60000", "DELAY", "700"});
  c->must({"LOCK", "for-ever", "alice", "0"});
  c->must({"LOCK", "noted", "alice", "60000", "NOTE", "why"});
  c->must({"LOCK", "noted for ever", "alice", "0", "NOTE", std::string("\0\r\n\xff", 4)});
  c->must({"LOCK", "noted shared", "alice", "60000", "SHARED", "NOTE", "reads"});
  c->must({"LOCK", "noted shared", "bob", "0", "SHARED"});
  c->must({"LOCK", "noted shared", "n:x", "0", "SHARED", "NOTE", "third"});
  c->must({"LOCK", "of-session", "alice", "60000", "SESSION"});
  c->must({"LOCK", "shared", "alice", "60000", "SHARED", "DELAY", "50"});
  c->must({"LOCK", "shared", "bob", "0", "SHARED", "SESSION"});
  c->must({"LOCK", "counted", "alice", "60000", "LIMIT", "3"});
  c->must({"LOCK", "counted", "o:x", "70000", "LIMIT", "2"});
  c->must({"HSET", "hash", "f", "1", "g", "", "", "no name"});
  c->must({"PEXPIRE", "hash", "9000"});
  c->must({"HSET", "fields", "f", "1", "g", "2", "", "3"});
  c->must({"HPEXPIRE", "fields", "8000", "FIELDS", "2", "f", ""});
  c->must({"PEXPIRE", "fields", "9000"});
  c->must({"HSETEX", "all fields", "PX", "5000", "FIELDS", "1", "holdfast:lock", "1"});
  c->must({"HSET", "like-lock", "holdfast:lock", "1", "o:alice", "7 1 -1 0 0 0 0 0"});
  c->must({"SADD", "set", "a", "", "3"});
  c->must({"ZADD", "zset", "1.5", "a", "-inf", "b", "2", ""});
  c->must({"PEXPIRE", "zset", "8000"});
  c->must({"LEASE", "GRANT", "granted", "60000", "doc1", "a", "doc2", "b"});
  c->must({"LEASE", "GRANT", "confirmed", "60000", "doc3", "c"});
  c->must({"LEASE", "CONFIRM", "confirmed"});
  c->must({"LEASE", "GRANT", "cancelled", "60000", "doc4", "d"});
  c->must({"LEASE", "CANCEL", "cancelled"});
  c->must({"LOCK", "delayed", "alice", "60000", "DELAY", "90000", "SESSION"});
  c->must({"LOCKS", "BREAK", "delayed"});
  TestClient closed(engine);
  closed.must({"LOCK", "delayed2", "alice", "60000", "DELAY", "90000", "SESSION"});
  closed.disconnect();
  c->must({"SELECT", "5"});
  c->must({"SET", "plain", "of another database"});
  c->must({"LEASE", "GRANT", "other", "60000", "doc1", "a"});
  c->must({"LOCK", "shared", "carol", "60000", "SHARED"});
  c->must({"SWAPDB", "5", "9"});
  return c;
}

void fill_big(TestClient& c) {
  std::vector<std::string> words = {"HSET", "big"};
  for (int i = 0; i < 2000; ++i) words.insert(words.end(), {"f" + std::to_string(i), std::to_string(i)});
  c.must(words);
  words[1] = "big-fields";
  c.must(words);
  c.must({"HPEXPIRE", "big-fields", "7000", "FIELDS", "2", "f7", "f1999"});
  c.must({"HPEXPIRE", "big-fields", "6000", "FIELDS", "1", "f8"});
  words[0] = "SADD";
  words[1] = "big-set";
  c.must(words);
  words = {"ZADD", "big-zset"};
  for (int i = 0; i < 2000; ++i) words.insert(words.end(), {std::to_string(i % 100), std::to_string(i)});
  c.must(words);
  words = {"HSET", "big-like-lock"};
  for (int i = 0; i < 2000; ++i) words.insert(words.end(), {"f" + std::to_string(i), std::to_string(i)});
  words.insert(words.end(), {"holdfast:lock", "1"});
  c.must(words);
  c.must({"SET", "long", std::string(100000, 'x')});
  c.must({"SET", std::string(3000, 'k'), "of a long key", "PX", "5000000000"});
}

}  // namespace

TEST_CASE("snapshot: strings, locks, hashes, leases, lock-delays and databases are restored as they were") {
  Engine engine(session_config());
  const auto c = fill(engine);
  fill_big(*c);
  const std::string before = state_text(engine, session_time(0));
  const std::string file = snapshot_of(engine, session_time(0), 17);
  CHECK(state_text(engine, session_time(0)) == before);
  CHECK(peek_journal(std::string_view(file).substr(0, 1000)).number == 17);
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{7}, size_t{4096}}) {
    CAPTURE(piece);
    Engine again(session_config());
    CHECK(restore(again, file, session_time(0), piece).empty());
    CHECK(state_text(again, session_time(0)) == before);
    finish_restore(again, session_time(0));
  }
}

TEST_CASE("snapshot: the engine's clock at the load has no influence") {
  Engine engine(session_config());
  const auto c = fill(engine);
  const std::string before = state_text(engine, session_time(0));
  const std::string file = snapshot_of(engine, session_time(0));
  Now other = session_time(0);
  other.mono.count += 77000000;
  Engine again(session_config());
  CHECK(restore(again, file, other).empty());
  CHECK(state_text(again, other) == before);
}

TEST_CASE("snapshot: an item past its deadline is restored, and expires with the first tick") {
  Engine engine(session_config());
  const auto c = fill(engine);
  const std::string file = snapshot_of(engine, session_time(0));
  Engine again(session_config());
  const Now late = session_time(1000000);
  CHECK(restore(again, file, late).empty());
  again.finish_loading(late);
  TestClient reader(again, late);
  Effects fx;
  again.tick(late, fx);
  CHECK(reader.ask({"EXISTS", "plain", "for-ever", "exclusive", "timed", "hash", "counted"}) == ":2\r\n");
  CHECK(reader.ask({"LEASE", "INFO", "granted"}).find("expired") != std::string::npos);
  again.check_invariants();
}

TEST_CASE("snapshot: later tokens are larger than all earlier ones, of every key") {
  Engine engine(session_config());
  const auto c = fill(engine);
  for (int i = 0; i < 50; ++i) {
    c->must({"LOCK", "often", "alice", "100"});
    c->must({"UNLOCK", "often", "alice"});
  }
  c->must({"LOCK", "far", "alice", "100", "TOKEN", "123456"});
  const uint64_t largest = engine.largest_token();
  Engine again(session_config());
  CHECK(restore(again, snapshot_of(engine, session_time(0)), session_time(0)).empty());
  CHECK(again.largest_token() == largest);
  TestClient other(again);
  for (int i = 0; i < 50; ++i) {
    CHECK(token_in(other.ask({"LOCK", "new" + std::to_string(i), "bob", "100"})) > largest);
  }
  other.ask({"SELECT", "3"});
  CHECK(token_in(other.ask({"LOCK", "often", "bob", "100"})) > largest);
}

TEST_CASE("snapshot: holds with tokens ahead of the clock are unchanged") {
  Config config = session_config();
  config.token_floor = kMaxToken / 2;
  Engine engine(config);
  const auto c = fill(engine);
  const std::string before = state_text(engine, session_time(0));
  Engine again(session_config());
  CHECK(restore(again, snapshot_of(engine, session_time(0)), session_time(0)).empty());
  CHECK(state_text(again, session_time(0)) == before);
  TestClient other(again);
  CHECK(other.ask({"LEASE", "CONFIRM", "granted"}).starts_with(":"));
}

TEST_CASE("snapshot: requests between its steps change nothing in it") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Engine engine(session_config());
    RandomSession session(engine, seed);
    for (int i = 0; i < 250; ++i) session.step();
    const Now moment = session.now();
    const std::string before = state_text(engine, moment);
    Snapshot snapshot(engine.state(), moment, 1, false);
    uint64_t steps = 0;
    while (!snapshot.step()) {
      if (++steps % (20 + seed) == 0) session.step();
    }
    CHECK(snapshot.saved() == snapshot.keys());
    Engine again(session_config());
    CHECK(restore(again, ended(snapshot.bytes()), moment).empty());
    CHECK(state_text(again, moment) == before);
    finish_restore(again, moment);
    engine.check_invariants();
  }
}

TEST_CASE("snapshot: a flush, a swap, an expiry and a new key during it change nothing in it") {
  const std::vector<std::vector<std::string>> requests = {
      {"FLUSHALL"},
      {"FLUSHDB"},
      {"SWAPDB", "0", "9"},
      {"SWAPDB", "0", "4"},
      {"SET", "brand-new", "value"},
      {"UNLOCK", "shared", "alice"},
      {"LOCK", "shared", "dave", "10", "SHARED"},
      {"RENEW", "counted", "alice", "5"},
      {"HSET", "big", "f7", "changed", "another", "one"},
      {"HDEL", "hash", "f"},
      {"RENAME", "hash", "elsewhere"},
      {"APPEND", "long", "more"},
      {"LEASE", "CANCEL", "granted"},
      {"LEASE", "CONFIRM", "granted"}};
  const Part part = one_of(2);
  for (size_t at = part.first; at < requests.size(); at += part.step) {
    const auto& request = requests[at];
    for (const int first : {0, 2000, 5000}) {
      CAPTURE(request[0]);
      CAPTURE(first);
      Engine engine(session_config());
      auto c = fill(engine);
      c->must({"SELECT", "0"});
      fill_big(*c);
      const std::string before = state_text(engine, session_time(0));
      Snapshot snapshot(engine.state(), session_time(0), 1, false);
      for (int i = 0; i < first; ++i) REQUIRE_FALSE(snapshot.step());
      c->at(session_time(1));
      c->must(request);
      Effects fx;
      engine.tick(session_time(65000), fx);
      c->disconnect();
      while (engine.next_deadline() && engine.next_deadline()->count == 0)
        engine.tick(session_time(65000), fx);
      while (!snapshot.step()) {
      }
      Engine again(session_config());
      CHECK(restore(again, ended(snapshot.bytes()), session_time(0)).empty());
      CHECK(state_text(again, session_time(0)) == before);
    }
  }
}

TEST_CASE("snapshot: one that follows a cancelled or a finished one is complete") {
  for (const int steps : {0, 1, 1000, 4095, 4096, 6000, 1000000}) {
    CAPTURE(steps);
    Engine engine(session_config());
    const auto c = fill(engine);
    {
      Snapshot first(engine.state(), session_time(0), 1, false);
      c->must({"SET", "plain", "touched"});
      for (int i = 0; i < steps && !first.step(); ++i) {
        if (i == 500) c->must({"SET", "new", "in the middle"});
      }
    }
    c->must({"SET", "newer", "between the two"});
    const std::string before = state_text(engine, session_time(0));
    Engine again(session_config());
    CHECK(restore(again, snapshot_of(engine, session_time(0)), session_time(0)).empty());
    CHECK(state_text(again, session_time(0)) == before);
  }
}

TEST_CASE("snapshot: an engine without keys gives a file that loads") {
  Engine engine(session_config());
  const std::string file = snapshot_of(engine, session_time(0));
  Engine again(session_config());
  CHECK(restore(again, file, session_time(0)).empty());
  CHECK(state_text(again, session_time(0)) == state_text(engine, session_time(0)));
}

TEST_CASE("snapshot: cut at any byte it is rejected") {
  Engine engine(session_config());
  const auto c = fill(engine);
  const std::string file = snapshot_of(engine, session_time(0));
  REQUIRE(file.size() < 4000);
  const Part part = one_of(3);
  for (size_t size = part.first; size < file.size(); size += part.step) {
    Engine again(session_config());
    if (restore(again, file.substr(0, size), session_time(0)).empty()) FAIL_CHECK("cut at ", size);
    finish_restore(again, session_time(0));
  }
}

TEST_CASE("snapshot: with any byte flipped it is rejected, at the latest by its checksum") {
  Engine engine(session_config());
  const auto c = fill(engine);
  const std::string file = snapshot_of(engine, session_time(0));
  const Part part = one_of(5);
  for (size_t at = part.first; at < file.size(); at += part.step) {
    simulation::Dice dice(at);
    for (const int flip : {1 << dice.below(8), 0xFF}) {
      std::string bad = file;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      Engine again(session_config());
      if (restore(again, bad, session_time(0)).empty()) FAIL_CHECK("flipped at ", at, " by ", flip);
      finish_restore(again, session_time(0));
    }
  }
}

TEST_CASE("snapshot: damage with a valid checksum is an error, or gives a consistent state") {
  Engine engine(session_config());
  const auto c = fill(engine);
  const std::string file = snapshot_of(engine, session_time(0));
  const Part part = one_of(5);
  for (size_t at = part.first; at + 8 < file.size(); at += part.step) {
    simulation::Dice dice(at);
    for (const int flip : {1 << dice.below(8), 0xFF}) {
      std::string bad = file.substr(0, file.size() - 8);
      bad[at] = static_cast<char>(bad[at] ^ flip);
      Engine again(session_config());
      const bool good = restore(again, ended(bad), session_time(0)).empty();
      finish_restore(again, session_time(0));
      if (!good) continue;
      Effects fx;
      again.tick(session_time(100000), fx);
      again.check_invariants();
    }
  }
}

// The reader has the whole piece, with more keys.
TEST_CASE("snapshot: nothing is restored after an error, in pieces of any size") {
  using namespace std::string_literals;
  const std::string wrong = "\xFE\x12\x00\x01\x61\x01\x31"s;  // SET a 1 in database 18
  const std::string good = "\xFE\x03\x00\x01\x62\x01\x32"s;   // SET b 2 in database 3
  const std::string file = ended("REDIS0010" + wrong + good + "\xFF");
  for (const size_t piece : {size_t{1}, file.size()}) {
    Engine engine(session_config());
    CHECK(restore(engine, file, session_time(0), piece) == "key in database 18: there are 16 (0 to 15)");
    CHECK(engine.state().dbs[3]->size() == 0);
  }
}

}  // namespace holdfast
