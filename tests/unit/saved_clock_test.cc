// Deadlines on disk, and a wall clock that is set between write and read. Within one boot the deadlines
// are restored exactly; after another boot the wall clock decides.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/checksum.h"
#include "core/codec/journal_record.h"
#include "core/codec/rdb_writer.h"
#include "core/persist/load_snapshot.h"
#include "core/persist/snapshot.h"
#include "session.h"
#include "state_text.h"

namespace holdfast {
namespace {

constexpr int64_t kAheadMs = 1'000'000'000'000;  // lead of the wall clock, until it is set
constexpr int64_t kHourMs = 3'600'000;
const std::vector<int64_t> kSteps = {-kAheadMs, -kHourMs, -1, 0, 1, kHourMs, 1000 * kHourMs};

Now time_of(int64_t mono_ms, int64_t set_ms = 0) {
  return Now{{mono_ms}, 0}.with_ahead_ms(kAheadMs + set_ms);
}

Config config_of(const std::string& boot_id, int64_t first_set_ms = 0) {
  Config config = session_config();
  config.boot_id = boot_id;
  config.first_ahead_ms = kAheadMs + first_set_ms;
  return config;
}

std::string taken(Engine& engine) {
  std::string records(engine.journal_records());
  engine.clear_journal_records();
  return records;
}

size_t clocks_in(const std::string& records, const std::string& boot_id = "one") {
  const std::string sign = {static_cast<char>(Record::kClock), 0, static_cast<char>(boot_id.size())};
  size_t n = 0;
  for (size_t at = 0; (at = records.find(sign + boot_id, at)) != std::string::npos; ++at) ++n;
  return n;
}

// A server that keeps a journal from `now` on. wrote() returns the records of one request.
struct Writer {
  Engine engine;
  TestClient client;
  explicit Writer(const std::string& boot_id) : engine(config_of(boot_id)), client(engine, time_of(1000)) {
    engine.keep_journal();
  }
  std::string wrote(Now now, const std::vector<std::string>& request) {
    client.at(now);
    client.must(request);
    return taken(engine);
  }
};

std::string snapshot_of(Engine& engine, Now now) {
  Snapshot snapshot(engine.state(), now, 1, false);
  while (!snapshot.step()) {
  }
  std::string file = snapshot.bytes();
  append_crc(file, crc64(0, file));
  return file;
}

std::string restore(Engine& engine, std::string_view file, Now now) {
  Restore restored(engine.state(), now, false);
  return restored.feed(file) && restored.finish() ? std::string() : restored.error();
}

// Returns the key's deadline on the engine's clock; -1 if it has none.
int64_t end_of(Engine& engine, const std::string& key) {
  Keyspace& keys = *engine.state().dbs[0];
  const Keyspace::Found f = keys.find(keys.key(key));
  return f ? deadline_of(*f).count : -1;
}

}  // namespace

TEST_CASE("clock: after a restart in the same boot a hold ends at the same time as without it") {
  Writer writer("one");
  const std::string records = writer.wrote(time_of(2000), {"LOCK", "k", "alice", "10000"});
  for (const int64_t set_ms : kSteps) {
    CAPTURE(set_ms);
    for (const int64_t mono_ms : {2000, 11999, 12000, 12001}) {
      CAPTURE(mono_ms);
      const Now now = time_of(mono_ms, set_ms);
      Engine engine(config_of("one", set_ms));
      REQUIRE(engine.replay(records, now).empty());
      CHECK(end_of(engine, "k") == 12000);
      engine.finish_loading(now);
      TestClient c(engine, now);
      CHECK(c.ask({"EXISTS", "k"}) == (mono_ms < 12000 ? ":1\r\n" : ":0\r\n"));
    }
  }
}

TEST_CASE("clock: after another boot the wall clock decides, as it was first read by the server") {
  Writer writer("one");
  const std::string records = writer.wrote(time_of(90'000), {"LOCK", "k", "alice", "10000"});
  for (const int64_t set_ms : kSteps) {
    CAPTURE(set_ms);
    Engine engine(config_of("two", 95'000));
    REQUIRE(engine.replay(records, time_of(1000, set_ms)).empty());
    CHECK(end_of(engine, "k") == 5000);
  }
}

TEST_CASE("clock: a server or file without a boot id uses the wall clock") {
  Writer none("");
  Writer one("one");
  const std::string without = none.wrote(time_of(2000), {"LOCK", "k", "alice", "10000"});
  const std::string with = one.wrote(time_of(2000), {"LOCK", "k", "alice", "10000"});
  CHECK(clocks_in(without) == 0);
  CHECK(with.size() > without.size());
  CHECK(with.substr(with.size() - without.size()) == without);
  for (const int64_t set_ms : {-4000, 0, 4000}) {
    CAPTURE(set_ms);
    Engine unknowing(config_of(""));
    REQUIRE(unknowing.replay(with, time_of(3000, set_ms)).empty());
    CHECK(end_of(unknowing, "k") == 12000 - set_ms);
    Engine knowing(config_of("one"));
    REQUIRE(knowing.replay(without, time_of(3000, set_ms)).empty());
    CHECK(end_of(knowing, "k") == 12000 - set_ms);
  }
}

TEST_CASE("clock: it is written once, and again where the wall clock moved by a millisecond") {
  Writer writer("one");
  CHECK(clocks_in(writer.wrote(time_of(2000), {"LOCK", "a", "alice", "10000"})) == 1);
  CHECK(clocks_in(writer.wrote(time_of(2500), {"LOCK", "b", "alice", "10000", "SHARED"})) == 0);
  const Now later{{2600}, time_of(2600).wall_us + 999};
  CHECK(clocks_in(writer.wrote(later, {"LOCK", "c", "alice", "10000"})) == 0);
  CHECK(clocks_in(writer.wrote(time_of(2700, 1), {"LOCK", "d", "alice", "10000"})) == 1);
  CHECK(clocks_in(writer.wrote(time_of(2700, 1), {"GET", "d"})) == 0);
  writer.engine.begin_journal_file();
  CHECK(clocks_in(writer.wrote(time_of(2700, 1), {"UNLOCK", "d", "alice"})) == 1);
  CHECK(clocks_in(writer.wrote(time_of(2700, 1), {"LEASE", "GRANT", "id", "500", "doc", "x"})) == 0);
}

TEST_CASE("clock: it stands before the first record of a file, of any kind") {
  const std::vector<std::vector<std::string>> kinds = {{"LOCK", "k", "alice", "5000"},
                                                       {"LOCK", "k", "alice", "5000", "SHARED"},
                                                       {"HSET", "h", "f", "v"},
                                                       {"LEASE", "GRANT", "id", "5000", "doc", "x"},
                                                       {"LOCK", "s", "bob", "5000", "SHARED"},
                                                       {"LOCKS", "BREAK", "late"}};
  for (const auto& request : kinds) {
    Writer writer("one");
    writer.wrote(time_of(2000), {"LOCK", "s", "alice", "5000", "SHARED"});
    writer.wrote(time_of(2000), {"LOCK", "late", "alice", "5000", "DELAY", "700"});
    writer.engine.begin_journal_file();
    const std::string records = writer.wrote(time_of(2000), request);
    CAPTURE(request[0]);
    CHECK(records.front() == static_cast<char>(Record::kClock));
    CHECK(clocks_in(records) == 1);
  }
}

TEST_CASE("clock: a clock set again and again while a journal was written changes nothing") {
  Writer writer("one");
  std::vector<std::string> turns;
  for (size_t i = 0; i < kSteps.size(); ++i) {
    const auto ms = static_cast<int64_t>(i) * 10;
    turns.push_back(writer.wrote(time_of(2000 + ms, kSteps[i]), {"LOCK", std::to_string(i), "a", "9000"}));
  }
  turns.push_back(writer.wrote(time_of(3000, kHourMs), {"RENEW", "0", "a", "20000"}));
  for (const int64_t set_ms : kSteps) {
    CAPTURE(set_ms);
    Engine engine(config_of("one", -5));
    for (const std::string& turn : turns) REQUIRE(engine.replay(turn, time_of(4000, set_ms)).empty());
    CHECK(end_of(engine, "0") == 23000);
    for (int64_t i = 1; i < std::ssize(kSteps); ++i)
      CHECK(end_of(engine, std::to_string(i)) == 11000 + i * 10);
  }
}

TEST_CASE("clock: a journal written in two boots is read part by part") {
  Writer one("one");
  Writer two("two");
  const std::string first = one.wrote(time_of(90'000), {"LOCK", "old", "alice", "10000"});
  const std::string second = two.wrote(time_of(2000, -kHourMs), {"LOCK", "new", "alice", "10000"});
  const std::string third = one.wrote(time_of(90'000, 50), {"LOCK", "older", "alice", "10000"});
  Engine engine(config_of("two", 90'000));
  const Now now = time_of(5000, kHourMs);
  for (const std::string& records : {first, second, third}) REQUIRE(engine.replay(records, now).empty());
  CHECK(end_of(engine, "old") == 10'000);
  CHECK(end_of(engine, "new") == 12'000);
  CHECK(end_of(engine, "older") == 10'050);
}

TEST_CASE("clock: the next file is read by its own clock, and by the wall clock where it has none") {
  Writer one("one");
  Writer none("");
  const std::string first = one.wrote(time_of(2000, kHourMs), {"LOCK", "a", "alice", "10000"});
  const std::string second = none.wrote(time_of(2000), {"LOCK", "b", "alice", "10000"});
  Engine engine(config_of("one", kHourMs));
  REQUIRE(engine.replay(first, time_of(3000, -70)).empty());
  engine.begin_replayed_file();
  REQUIRE(engine.replay(second, time_of(3000, -70)).empty());
  CHECK(end_of(engine, "a") == 12'000);
  CHECK(end_of(engine, "b") == 12'070);
}

TEST_CASE("clock: a snapshot has one clock, and the journal behind it another") {
  Writer writer("one");
  writer.wrote(time_of(1500, -kHourMs), {"LOCK", "early", "alice", "60000", "DELAY", "700"});
  writer.wrote(time_of(1600, kHourMs), {"LOCK", "shared", "alice", "60000", "SHARED"});
  writer.wrote(time_of(1700), {"LEASE", "GRANT", "id", "60000", "doc", "x"});
  writer.wrote(time_of(1700), {"LOCK", "delayed", "alice", "60000", "DELAY", "90000"});
  writer.wrote(time_of(1700), {"LOCKS", "BREAK", "delayed"});
  const std::string file = snapshot_of(writer.engine, time_of(2000, 7 * kHourMs));
  writer.engine.begin_journal_file();
  const std::string behind = writer.wrote(time_of(2100, -9 * kHourMs), {"LOCK", "later", "bob", "60000"});
  const std::string text = state_text(writer.engine, time_of(3000));
  for (const int64_t set_ms : kSteps) {
    CAPTURE(set_ms);
    Engine engine(config_of("one", set_ms));
    REQUIRE(restore(engine, file, time_of(3000, set_ms)).empty());
    engine.begin_replayed_file();
    REQUIRE(engine.replay(behind, time_of(3000, set_ms)).empty());
    CHECK(state_text(engine, time_of(3000)) == text);
    engine.finish_loading(time_of(3000, set_ms));
    engine.check_invariants();
  }
  Engine moved(config_of("two", 6 * kHourMs));  // one hour behind the clock of the snapshot
  REQUIRE(restore(moved, file, time_of(3000)).empty());
  CHECK(end_of(moved, "early") == 61'500 + kHourMs);
}

TEST_CASE("clock: a snapshot without a clock is read by the wall clock, one with a bad clock is rejected") {
  Writer none("");
  none.wrote(time_of(2000), {"LOCK", "k", "alice", "10000"});
  Engine engine(config_of("one"));
  REQUIRE(restore(engine, snapshot_of(none.engine, time_of(2000)), time_of(3000, -70)).empty());
  CHECK(end_of(engine, "k") == 12'070);
  for (const std::string text : {"", "12", "x one", "one"}) {
    CAPTURE(text);
    std::string file;
    RdbWriter rdb(file);
    rdb.header();
    rdb.aux(kAuxClock, text);
    rdb.end();
    append_crc(file, crc64(0, file));
    CHECK(restore(engine, file, time_of(3000)) == "a holdfast-clock is not a clock");
  }
}

TEST_CASE("clock: a difference of any size and sign is read as written, and causes no overflow") {
  for (const int64_t ahead_ms : {INT64_MIN, -kHourMs, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
    CAPTURE(ahead_ms);
    std::string bytes;
    put_clock(bytes, {"one", ahead_ms});
    ByteReader in(bytes);
    const SavedClock clock = read_clock(in);
    CHECK((in.ok() && in.at_end()));
    CHECK(clock.ahead_ms == ahead_ms);
    const std::string text = clock_text({"an id", ahead_ms});
    CHECK(read_clock_text(text)->ahead_ms == ahead_ms);
    CHECK(read_clock_text(text)->boot_id == "an id");
    Engine engine(config_of("one", 0));
    Writer writer("one");
    writer.wrote(time_of(2000), {"GET", "k"});
    const std::string record = {static_cast<char>(Record::kClock), 0};
    const std::string lock = writer.wrote(time_of(2000), {"LOCK", "k", "alice", "10000"});
    const std::string rest = lock.substr(lock.find(std::string{static_cast<char>(Record::kString), 0}));
    CHECK(engine.replay(record + bytes + rest, time_of(3000)).empty());
    engine.finish_loading(time_of(3000));
    engine.check_invariants();
  }
}

TEST_CASE("clock: a long session whose clock is set again and again is restored exactly") {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    Config config = session_config();
    config.boot_id = "one";
    Engine engine(config);
    engine.keep_journal();
    RandomSession session(engine, seed, RandomSession::Clock::kIsSet);
    Engine again(config);
    for (int i = 0; i < 600; ++i) {
      session.step();
      const Now now = session.now().with_ahead_ms(static_cast<int64_t>(seed) * 12345);
      REQUIRE(again.replay(taken(engine), now).empty());
    }
    CHECK(state_text(again, session.now()) == state_text(engine, session.now()));
    Engine restored(config);
    REQUIRE(restore(restored, snapshot_of(engine, session.now()), session_time(0)).empty());
    CHECK(state_text(restored, session.now()) == state_text(engine, session.now()));
  }
}

}  // namespace holdfast
