// The replay of the journal's records: it restores the same state, never crashes on any bytes, and needs
// no clock.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/codec/journal_record.h"
#include "core/events/record_changes.h"
#include "core/persist/restore_state.h"
#include "part.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

// Returns all records since the last clear, and clears them.
std::string taken(Engine& engine) {
  std::string records(engine.journal_records());
  engine.clear_journal_records();
  return records;
}

void finish_restore(Engine& engine, Now now) {
  engine.finish_loading(now);
  engine.check_invariants();
}

// Requests that make the state before a record, and then the record itself.
struct Sample {
  Record op;
  std::vector<std::vector<std::string>> before;
  std::vector<std::string> request;
};

std::vector<std::string> large_hash() {
  std::vector<std::string> words = {"HSET", "h"};
  for (int i = 0; i < 600; ++i) words.insert(words.end(), {"f" + std::to_string(i), "x"});
  return words;
}

const std::string kLibraryCode = "#!lua name=l\nredis.register_function('f', function() return 1 end)";
const std::string kOtherCode = "#!lua name=l\nredis.register_function('g', function() return 2 end)";

std::vector<Sample> samples() {
  const std::vector<std::string> lock = {"LOCK", "k", "alice", "5000", "SHARED", "DELAY", "70"};
  const std::vector<std::string> timed = {"HSETEX", "h", "PX", "500", "FIELDS", "2", "f", "1", "g", "2"};
  const std::vector<std::string> lease = {"LEASE", "GRANT", "id", "5000", "doc1", "a", "doc2", "b"};
  return {
      {Record::kString, {}, {"LOCK", "k", "alice", "5000", "DELAY", "70", "SESSION"}},
      {Record::kString, {}, {"LOCK", "k", "alice", "5000", "NOTE", "why"}},
      {Record::kString, {{"LOCK", "k", "alice", "5000", "NOTE", "why"}}, {"RENEW", "k", "alice", "7000"}},
      {Record::kString, {{"LOCK", "k", "alice", "5000"}}, {"FENCE", "k", "alice", "500000"}},
      {Record::kString, {{"LOCK", "k", "alice", "5000"}}, {"RENEW", "k", "alice", "7000"}},
      {Record::kHash, {}, {"HSET", "h", "f", "1", "g", ""}},
      {Record::kLock, {}, lock},
      {Record::kErase, {{"SET", "k", "v"}}, {"DEL", "k"}},
      {Record::kSetFields, {large_hash()}, {"HSET", "h", "f1", "new", "g", "2"}},
      {Record::kEraseFields, {large_hash()}, {"HDEL", "h", "f1", "f2"}},
      {Record::kPutHolder, {lock}, {"LOCK", "k", "bob", "0", "SHARED"}},
      {Record::kPutHolder, {lock}, {"LOCK", "k", "bob", "0", "SHARED", "NOTE", "why"}},
      {Record::kPutHolder, {lock}, {"FENCE", "k", "alice", "500000"}},
      {Record::kPutHolder, {lock, {"LOCK", "k", "bob", "0", "SHARED"}}, {"RENEW", "k", "bob", "500"}},
      {Record::kEraseHolder, {lock, {"LOCK", "k", "bob", "0", "SHARED"}}, {"UNLOCK", "k", "bob"}},
      {Record::kDelay, {{"LOCK", "k", "alice", "5000", "DELAY", "70"}}, {"LOCKS", "BREAK", "k"}},
      {Record::kFlush, {{"SET", "k", "v"}}, {"FLUSHDB"}},
      {Record::kSwap, {{"SET", "k", "v"}}, {"SWAPDB", "0", "5"}},
      {Record::kLease, {}, lease},
      {Record::kSet, {}, {"SADD", "s", "a", "b"}},
      {Record::kAddMembers, {{"SADD", "s", "a"}}, {"SADD", "s", "b", "a"}},
      {Record::kEraseMembers, {{"SADD", "s", "a", "b"}}, {"SREM", "s", "b", "x"}},
      {Record::kList, {}, {"RPUSH", "l", "a", "", "12"}},
      {Record::kPushElements, {{"RPUSH", "l", "a"}}, {"LPUSH", "l", "b", "c"}},
      {Record::kPushElements, {{"RPUSH", "l", "a"}}, {"RPUSHX", "l", "b", "c"}},
      {Record::kSetElement, {{"RPUSH", "l", "a", "b"}}, {"LSET", "l", "-1", "c"}},
      {Record::kInsertElement, {{"RPUSH", "l", "a", "b"}}, {"LINSERT", "l", "AFTER", "b", "c"}},
      {Record::kEraseElements, {{"RPUSH", "l", "a", "b", "c"}}, {"RPOP", "l", "2"}},
      {Record::kEraseElements, {{"RPUSH", "l", "a", "b", "c", "d"}}, {"LTRIM", "l", "1", "2"}},
      {Record::kEraseElements, {{"RPUSH", "l", "a", "b"}}, {"LMOVE", "l", "m", "LEFT", "LEFT"}},
      {Record::kEraseEqualElements, {{"RPUSH", "l", "a", "b", "a", "a"}}, {"LREM", "l", "-2", "a"}},
      {Record::kZset, {}, {"ZADD", "z", "1.5", "a", "-inf", "b"}},
      {Record::kZset, {}, {"ZADD", "z", "1", std::string(65, 'x'), "-0", "a"}},  // too long to be packed
      {Record::kPutScores, {{"ZADD", "z", "1", "a"}}, {"ZADD", "z", "2", "b", "3", "a"}},
      {Record::kEraseMembers, {{"ZADD", "z", "1", "a", "2", "b"}}, {"ZREM", "z", "b", "x"}},
      {Record::kEraseRanks, {{"ZADD", "z", "1", "a", "2", "b", "3", "c"}}, {"ZPOPMAX", "z", "2"}},
      {Record::kDeadline, {{"SADD", "s", "a"}}, {"PEXPIRE", "s", "500"}},
      {Record::kDeadline, {large_hash()}, {"PEXPIRE", "h", "500"}},
      {Record::kFieldDeadlines, {large_hash()}, {"HPEXPIRE", "h", "500", "FIELDS", "2", "f1", "f2"}},
      {Record::kFieldDeadlines, {timed, {"SET", "k", "v"}}, {"HPERSIST", "h", "FIELDS", "1", "f"}},
      {Record::kHash, {}, timed},
      {Record::kHash, {timed, {"PEXPIRE", "h", "700"}}, {"COPY", "h", "i"}},
      {Record::kSetFields, {timed}, {"HINCRBY", "h", "f", "2"}},
      {Record::kEraseFields, {timed}, {"HGETDEL", "h", "FIELDS", "1", "f"}},
      {Record::kLeaseEnd, {lease}, {"LEASE", "CANCEL", "id"}},
      {Record::kLibrary, {}, {"FUNCTION", "LOAD", kLibraryCode}},
      {Record::kLibrary, {{"FUNCTION", "LOAD", kLibraryCode}}, {"FUNCTION", "LOAD", "REPLACE", kOtherCode}},
      {Record::kLibraryEnd, {{"FUNCTION", "LOAD", kLibraryCode}}, {"FUNCTION", "DELETE", "l"}},
      {Record::kLibraryEnd, {{"FUNCTION", "LOAD", kLibraryCode}}, {"FUNCTION", "FLUSH"}},
  };
}

struct Recorded {
  std::string before;
  std::string records;
  std::string text;  // the state after them
};

Recorded record(const Sample& sample) {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  for (const auto& request : sample.before) c.must(request);
  Recorded r;
  r.before = taken(engine);
  c.must(sample.request);
  r.records = taken(engine);
  r.text = state_text(engine, session_time(0));
  return r;
}

}  // namespace

TEST_CASE("journal: distinguishes an iteration with grants from one that only ended holds") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  const auto grants = [&](const std::vector<std::string>& words) {
    c.must(words);
    const bool granted = engine.recorded_grants();
    CHECK((!granted || !engine.journal_records().empty()));
    engine.clear_journal_records();
    CHECK_FALSE(engine.recorded_grants());
    return granted;
  };
  CHECK(grants({"LOCK", "k", "alice", "1000", "DELAY", "10"}));
  CHECK(grants({"RENEW", "k", "alice", "2000"}));
  CHECK_FALSE(grants({"GET", "k"}));
  CHECK_FALSE(grants({"UNLOCK", "k", "alice"}));
  CHECK(grants({"LOCK", "s", "alice", "1000", "SHARED"}));
  CHECK(grants({"LOCK", "s", "bob", "1000", "SHARED"}));
  CHECK_FALSE(grants({"UNLOCK", "s", "alice"}));
  CHECK(grants({"LEASE", "GRANT", "one", "1000", "doc", "etag"}));
  CHECK(grants({"LEASE", "CONFIRM", "one"}));
  CHECK(grants({"LEASE", "GRANT", "two", "1000", "doc2", "etag"}));
  CHECK_FALSE(grants({"LEASE", "CANCEL", "two"}));
  CHECK(grants({"HSET", "h", "f", "v", "g", "w"}));
  CHECK_FALSE(grants({"DEL", "h"}));
  CHECK(grants({"SWAPDB", "0", "1"}));
  CHECK_FALSE(grants({"FLUSHALL"}));
}

TEST_CASE("replay: the record of each kind gives the state that it describes") {
  for (const Sample& sample : samples()) {
    CAPTURE(sample.request[0]);
    const Recorded r = record(sample);
    REQUIRE_FALSE(r.records.empty());
    const auto op = static_cast<char>(sample.op);
    const bool there = r.records.find(std::string{op, '\0'}) != std::string::npos;
    CHECK(there);
    Engine again(session_config());
    CHECK(again.replay(r.before, session_time(0)).empty());
    CHECK(again.replay(r.records, session_time(0)).empty());
    CHECK(state_text(again, session_time(0)) == r.text);
    finish_restore(again, session_time(0));
  }
}

TEST_CASE("journal: the record of a change of a large list does not grow with the list") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  std::vector<std::string> all = {"RPUSH", "l"};
  for (int i = 0; i < 50000; ++i) all.push_back("element" + std::to_string(i));
  c.must(all);
  CHECK(taken(engine).size() > 500000);
  const std::vector<std::vector<std::string>> changes = {{"LPUSH", "l", "a"},
                                                         {"LSET", "l", "20000", "b"},
                                                         {"LINSERT", "l", "BEFORE", "b", "c"},
                                                         {"LREM", "l", "-1", "b"},
                                                         {"LTRIM", "l", "2", "-2"},
                                                         {"LPOP", "l", "1000"},
                                                         {"BLPOP", "l", "0"},
                                                         {"LMOVE", "l", "l", "LEFT", "RIGHT"},
                                                         {"PEXPIRE", "l", "1000"}};
  for (const auto& change : changes) {
    CAPTURE(change[0]);
    c.must(change);
    const size_t bytes = taken(engine).size();
    CHECK(bytes > 0);
    CHECK(bytes < 100);
  }
}

TEST_CASE("replay: records of any kind that are cut within the last one are rejected") {
  for (const Sample& sample : samples()) {
    const Recorded r = record(sample);
    for (size_t size = 0; size < r.records.size(); ++size) {
      CAPTURE(sample.request[0]);
      CAPTURE(size);
      Engine again(session_config());
      CHECK(again.replay(r.before, session_time(0)).empty());
      const std::string part = r.records.substr(0, size);
      const bool good = again.replay(part, session_time(0)).empty();
      if (good && size > 0) {
        // The cut left whole records, and the rest can follow.
        CHECK(again.replay(r.records.substr(size), session_time(0)).empty());
        CHECK(state_text(again, session_time(0)) == r.text);
      }
      finish_restore(again, session_time(0));
    }
  }
}

TEST_CASE("replay: a flipped byte is an error, or gives a consistent state") {
  const Part part = one_of(3);
  for (const Sample& sample : samples()) {
    const Recorded r = record(sample);
    for (size_t at = part.first; at < r.records.size(); at += part.step) {
      simulation::Dice dice(at);
      for (const int flip : {1 << dice.below(8), 1 << dice.below(8), 0xFF}) {
        std::string bad = r.records;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        Engine again(session_config());
        CHECK(again.replay(r.before, session_time(0)).empty());
        static_cast<void>(again.replay(bad, session_time(0)));
        finish_restore(again, session_time(0));
        Effects fx;
        again.tick(session_time(100000), fx);
        again.check_invariants();
      }
    }
  }
}

TEST_CASE("replay: the records of a long session give the same keys, holds, leases and delays") {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Engine engine(session_config());
    engine.keep_journal();
    RandomSession session(engine, seed);
    std::string records;
    for (int i = 0; i < 600; ++i) {
      session.step();
      records += taken(engine);
    }
    Engine again(session_config());
    REQUIRE(again.replay(records, session.now()).empty());
    CHECK(state_text(again, session.now()) == state_text(engine, session.now()));
    finish_restore(again, session.now());
    CHECK(again.largest_token() <= engine.largest_token());
  }
}

TEST_CASE("replay: it equals the session after each loop iteration") {
  Engine engine(session_config());
  engine.keep_journal();
  RandomSession session(engine, 99);
  Engine again(session_config());
  for (int i = 0; i < 400; ++i) {
    session.step();
    REQUIRE(again.replay(taken(engine), session.now()).empty());
    if (i % 20 == 0) REQUIRE(state_text(again, session.now()) == state_text(engine, session.now()));
  }
}

TEST_CASE("replay: does not read the clock; past deadlines are restored and expire with the first tick") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  c.must({"SET", "timed", "v", "PX", "100"});
  c.must({"LOCK", "one", "alice", "100"});
  c.must({"LOCK", "shared", "alice", "100", "SHARED"});
  c.must({"LOCK", "shared", "bob", "0", "SHARED"});
  c.must({"HSET", "h", "f", "v"});
  c.must({"PEXPIRE", "h", "100"});
  c.must({"LEASE", "GRANT", "id", "100", "doc", "x"});
  const std::string records = taken(engine);
  const Now late = session_time(4000000);
  Engine again(session_config());
  REQUIRE(again.replay(records, late).empty());
  CHECK(again.state().dbs[0]->live() == 5);
  CHECK(again.state().leases.size() == 1);
  again.finish_loading(late);
  Effects fx;
  again.tick(late, fx);
  CHECK(again.state().dbs[0]->live() == 1);
  CHECK(again.state().leases.size() == 0);
  TestClient reader(again, late);
  CHECK(reader.ask({"EXISTS", "shared"}) == ":1\r\n");
  CHECK(reader.ask({"UNLOCK", "shared", "alice"}) == ":-1\r\n");
  CHECK(reader.ask({"UNLOCK", "shared", "bob"}) == ":1\r\n");
  again.check_invariants();
}

TEST_CASE("replay: a WATCH during the load does not expire a hold whose end is in a later record") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  c.must({"LOCK", "k", "alice", "100", "SHARED"});
  c.must({"LOCK", "k", "bob", "5000", "SHARED"});
  const std::string before = taken(engine);
  c.must({"UNLOCK", "k", "alice"});
  const std::string after = taken(engine);
  const Now late = session_time(1000);
  Engine again(session_config());
  again.availability().loading = true;
  REQUIRE(again.replay(before, late).empty());
  TestClient watcher(again, late);
  CHECK(watcher.ask({"WATCH", "k"}) == "+OK\r\n");
  CHECK(again.replay(after, late) == "");
  again.availability().loading = false;
  finish_restore(again, late);
  CHECK(watcher.ask({"UNLOCK", "k", "bob"}) == ":1\r\n");
}

TEST_CASE("replay: records that no server writes are rejected with a reason") {
  const auto wrong = [](const std::string& records) {
    Engine engine(session_config());
    const std::string why = engine.replay(records, session_time(0));
    finish_restore(engine, session_time(0));
    return why;
  };
  CHECK(wrong(std::string{0, 0}) == "a record of an unknown type");
  CHECK(wrong(std::string{'\x63', 0}) == "a record of an unknown type");
  CHECK(wrong(std::string{10, 16}) == "no such database");
  CHECK(wrong(std::string{11, 0, 16}) == "no such database");
  CHECK(wrong(std::string{10}).empty() == false);
  CHECK(wrong(std::string{14, 0, 1, 'x'}) == "a record is incomplete");
  CHECK(wrong(std::string{13, 0, 1, 'x', 9, 0}) == "unknown outcome of a lease");
  CHECK(wrong(std::string{5, 0, 1, 'k', 0}) == "fields of a key that is not a hash (key 'k')");
  CHECK(wrong(std::string{8, 0, 1, 'k', 1, 'o'}) == "the end of a hold that does not exist (key 'k')");
  CHECK(wrong({}).empty());
}

}  // namespace holdfast
