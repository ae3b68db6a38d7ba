// RESTORE of a large value runs in chunks. Other clients are served in between, and see the key only after
// the last chunk.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/persist/snapshot.h"
#include "core/state/memory_use.h"
#include "unit/payloads.h"
#include "unit/session.h"
#include "unit/state_text.h"

namespace holdfast {
namespace {

constexpr size_t kMany = 100000;

uint64_t used_bytes(Engine& engine) { return used_memory_bytes(engine.state()); }

// Ticks until the client is unblocked. Returns the number of ticks.
int finish(Engine& engine, TestClient& client, Now now = session_time(0)) {
  int ticks = 0;
  for (Effects fx; client.blocked(); ++ticks) {
    REQUIRE(engine.next_deadline() == TimeMs{0});
    engine.tick(now, fx);
  }
  engine.check_invariants();
  return ticks;
}

int free_all(Engine& engine) {
  int ticks = 0;
  for (Effects fx; engine.next_deadline() == TimeMs{0}; ++ticks) engine.tick(session_time(0), fx);
  return ticks;
}

// The state that the records of the engine restore.
std::string replayed(Engine& engine, Now now = session_time(0)) {
  Engine again(session_config());
  CHECK(again.replay(engine.journal_records(), now).empty());
  again.finish_loading(now);
  return state_text(again, now);
}

// An engine in the middle of a RESTORE of the key "k".
struct Restoring {
  explicit Restoring(const std::vector<std::string>& options = {},
                     std::string payload = repeated_list(kMany), const std::string& ttl = "0") {
    std::vector<std::string> words = {"RESTORE", "k", ttl, std::move(payload)};
    words.insert(words.end(), options.begin(), options.end());
    REQUIRE(client.ask(words).empty());
    tick(3);
    REQUIRE(client.blocked());
  }
  void tick(int times) {
    for (Effects fx; times > 0; --times) engine.tick(session_time(0), fx);
  }
  std::string reply() {
    finish(engine, client);
    return client.received();
  }

  Engine engine{session_config()};
  TestClient client{engine};
  TestClient other{engine};
};

TEST_CASE("restore: a small value is there at once, a large one after many chunks") {
  for (const auto& [number, least] : {std::pair(1, 0), {2000, 0}, {2048, 1}, {4096, 2}, {100000, 48}}) {
    const int elements = number;  // clang 14 cannot capture `number`
    CAPTURE(elements);
    Engine engine(session_config());
    TestClient client(engine);
    const std::string reply =
        client.ask({"RESTORE", "k", "0", repeated_list(static_cast<size_t>(elements))});
    CHECK(reply == (least == 0 ? "+OK\r\n" : ""));
    const int ticks = finish(engine, client);
    CHECK(ticks >= least);
    CHECK(ticks <= least + 2);
    if (least > 0) CHECK(client.received() == "+OK\r\n");
    CHECK(client.ask({"LLEN", "k"}) == ":" + std::to_string(elements) + "\r\n");
  }
}

TEST_CASE("restore: other clients are served meanwhile, and the key and its record come at the end") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient client(engine);
  TestClient other(engine);
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany)}).empty());
  for (Effects fx; client.blocked();) {
    CHECK(other.ask({"PING"}) == "+PONG\r\n");
    CHECK(other.ask({"EXISTS", "k"}) == ":0\r\n");
    CHECK(engine.journal_records().empty());
    CHECK(client.received().empty());
    engine.tick(session_time(0), fx);
  }
  CHECK(client.received() == "+OK\r\n");
  CHECK(other.ask({"LLEN", "k"}) == ":100000\r\n");
  CHECK(engine.journal_records().size() < repeated_list(kMany).size() + 100);
  CHECK(replayed(engine) == state_text(engine, session_time(0)));
}

// Values in all encodings, and large texts. Most need several chunks.
std::vector<std::string> large_payloads() {
  const size_t n = 3000;
  std::string numbers = low_first_bytes(8, 4) + low_first_bytes(n, 4);
  std::string members;
  std::string scores;
  std::string timed;
  std::string plain = rdb_length(n);
  std::string nodes = rdb_length(n);
  for (size_t i = 0; i < n; ++i) {
    const std::string name = "m" + std::to_string(i);
    numbers += low_first_bytes(i * i, 8);
    members += packed_element(name);
    scores += packed_element(name) + packed_element(std::to_string(i % 7) + ".5");
    timed +=
        packed_element(name) + packed_element("v") + packed_element(i % 2 == 0 ? "0" : "9000000000000");
    plain += rdb_text(name) + compressed_text("", name, 100, "");
    nodes += i % 2 == 0 ? "\x01" + rdb_text(name)
                        : "\x02" + rdb_text(listpack(packed_element(name) + "\x07\x01"));
  }
  return {repeated_list(n),
          packed_hash(n),
          repeated_string(1 << 20, "abc"),
          payload_of(rdb::kTypeString, rdb_text(std::string(3000, 'x'))),
          payload_of(rdb::kTypeSetIntset, rdb_text(numbers)),
          payload_of(rdb::kTypeSetListpack, rdb_text(listpack(members))),
          payload_of(rdb::kTypeZsetListpack, rdb_text(listpack(scores))),
          payload_of(rdb::kTypeHashListpackDeadlines, low_first_bytes(1, 8) + rdb_text(listpack(timed))),
          payload_of(rdb::kTypeHash, plain),
          payload_of(rdb::kTypeListQuicklist2, nodes),
          payload_of(rdb::kTypeHash, "\x02" + rdb_text("a") + compressed_text("", "xyz", 1 << 19, "") +
                                         rdb_text("b") + rdb_text("c"))};
}

TEST_CASE("restore: a value read in chunks is the same as one that a transaction reads at once") {
  for (const std::string& payload : large_payloads()) {
    Engine chunks(session_config());
    chunks.keep_journal();
    TestClient client(chunks);
    client.must({"LOCK", "k", "owner", "0", "SHARED"});
    std::string reply = client.ask({"RESTORE", "k", "100", payload, "REPLACE"});
    finish(chunks, client);
    CHECK(reply + client.received() == "+OK\r\n");
    Engine whole(session_config());
    whole.keep_journal();
    TestClient at_once(whole);
    at_once.must({"LOCK", "k", "owner", "0", "SHARED"});
    at_once.must({"MULTI"});
    at_once.must({"RESTORE", "k", "100", payload, "REPLACE"});
    CHECK(at_once.ask({"EXEC"}) == "*1\r\n+OK\r\n");
    CHECK_FALSE(at_once.blocked());
    CHECK(state_text(chunks, session_time(0)) == state_text(whole, session_time(0)));
    CHECK(replayed(chunks) == state_text(chunks, session_time(0)));
    CHECK(replayed(whole) == state_text(whole, session_time(0)));
    CHECK(client.ask({"OBJECT", "ENCODING", "k"}) == at_once.ask({"OBJECT", "ENCODING", "k"}));
    CHECK(chunks.state().dbs[0]->used_bytes() == whole.state().dbs[0]->used_bytes());
    CHECK(chunks.state().memory.partial_bytes == 0);
    client.must({"DEL", "k"});
    CHECK(replayed(chunks) == state_text(chunks, session_time(0)));
  }
}

std::string timed_hash(size_t fields, const std::string& deadline_ms) {
  std::string elements;
  for (size_t i = 0; i < fields; ++i) {
    elements += packed_element("f" + std::to_string(i)) + "\x01\x01" + packed_element(deadline_ms);
  }
  return payload_of(rdb::kTypeHashListpackDeadlines, low_first_bytes(1, 8) + rdb_text(listpack(elements)));
}

TEST_CASE(
    "restore: the record has the fields' deadlines of memory, also if the wall clock is set meanwhile") {
  const Now set = session_time(0).with_ahead_ms(session_time(0).ahead_ms() + 5000);
  for (const Now now : {session_time(0), set}) {
    Engine engine(session_config());
    engine.keep_journal();
    TestClient client(engine);
    const std::string payload = timed_hash(3000, "1000000009000");
    CHECK(client.ask({"RESTORE", "k", "0", payload}).empty());
    finish(engine, client, now);
    CHECK(client.received() == "+OK\r\n");
    CHECK(client.ask({"HPTTL", "k", "FIELDS", "1", "f7"}) == "*1\r\n:9000\r\n");
    CHECK(replayed(engine, now) == state_text(engine, now));
  }
}

TEST_CASE("restore: a script that replaces a value very often writes 64 MiB of payloads, then the value") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient client(engine);
  const std::string payload = payload_of(rdb::kTypeString, rdb_text(std::string(1U << 20U, 'x')));
  const std::string script =
      "for i = 1, 99 do redis.call('restore', KEYS[1], 0, ARGV[1], 'REPLACE') end return 'done'";
  CHECK(client.ask({"EVAL", script, "1", "k", payload}) == "$4\r\ndone\r\n");
  CHECK(engine.journal_records().size() > (64U << 20U));
  CHECK(engine.journal_records().size() < (67U << 20U));
  CHECK(replayed(engine) == state_text(engine, session_time(0)));
}

TEST_CASE("restore: a record whose payload has no value is damage") {
  Engine engine(session_config());
  engine.keep_journal();
  TestClient client(engine);
  client.must({"RESTORE", "k", "0", repeated_list(2000)});
  std::string records(engine.journal_records());
  const size_t at = records.find("\x12\x01\x02");
  REQUIRE(at != std::string::npos);
  records[at] = '\x0F';
  Engine again(session_config());
  CHECK(again.replay(records, session_time(0)).find("payload") != std::string::npos);
}

TEST_CASE("restore: the requests of the client wait for the end, in a script nothing waits") {
  Restoring r;
  CHECK(r.reply() == "+OK\r\n");
  CHECK(r.client.ask({"LLEN", "k"}) == ":100000\r\n");
  const std::string script = "return redis.call('restore', KEYS[1], 0, ARGV[1])";
  CHECK(r.other.ask({"EVAL", script, "1", "s", repeated_list(kMany)}) == "+OK\r\n");
  CHECK_FALSE(r.other.blocked());
}

TEST_CASE("restore: a key that another client makes meanwhile is busy, unless REPLACE is given") {
  for (const bool replace : {false, true}) {
    Restoring r(replace ? std::vector<std::string>{"REPLACE"} : std::vector<std::string>{});
    r.other.must({"SET", "k", "theirs"});
    CHECK(r.reply() == (replace ? "+OK\r\n" : "-BUSYKEY Target key name already exists.\r\n"));
    CHECK(r.other.ask({"TYPE", "k"}) == (replace ? "+list\r\n" : "+string\r\n"));
  }
}

TEST_CASE("restore: a key that another client removes meanwhile is free") {
  Engine engine(session_config());
  TestClient client(engine);
  TestClient other(engine);
  other.must({"SET", "k", "theirs"});
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany)}).starts_with("-BUSYKEY"));
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany), "REPLACE"}).empty());
  CHECK(other.ask({"GET", "k"}) == "$6\r\ntheirs\r\n");
  other.must({"DEL", "k"});
  finish(engine, client);
  CHECK(other.ask({"LLEN", "k"}) == ":100000\r\n");
}

TEST_CASE("restore: the TTL counts from the end of the reading; ABSTTL may be over by then") {
  for (const auto& [ttl, option, left] : {std::tuple("100", "REPLACE", ":100\r\n"),
                                          {"1000000000101", "ABSTTL", ":1\r\n"},
                                          {"1000000000100", "ABSTTL", ":-2\r\n"}}) {
    Restoring r({option}, repeated_list(kMany), ttl);
    finish(r.engine, r.client, session_time(100));
    CHECK(r.client.received() == "+OK\r\n");
    r.other.at(session_time(100));
    CHECK(r.other.ask({"PTTL", "k"}) == left);
  }
}

TEST_CASE("restore: what is read so far counts as used memory, and a disconnect frees it in steps") {
  Engine engine(session_config());
  TestClient other(engine);
  const uint64_t before = used_bytes(engine);
  TestClient client(engine);
  CHECK(client.ask({"RESTORE", "k", "0", packed_hash(kMany)}).empty());
  const uint64_t at_first = used_bytes(engine);
  Effects fx;
  for (int i = 0; i < 60; ++i) engine.tick(session_time(0), fx);
  REQUIRE(client.blocked());
  CHECK(used_bytes(engine) > at_first + 50000 * 30);
  client.disconnect();
  CHECK(used_bytes(engine) > at_first);
  CHECK(free_all(engine) > 100);
  CHECK(used_bytes(engine) < before + (2U << 20U));  // the spare buffer of DeferredFree
  CHECK(engine.state().memory.partial_bytes == 0);
  CHECK(other.ask({"DBSIZE"}) == ":0\r\n");
  engine.check_invariants();
}

TEST_CASE("restore: FLUSHALL and SWAPDB meanwhile") {
  Restoring flushed;
  flushed.other.must({"FLUSHALL"});
  CHECK(flushed.reply() == "+OK\r\n");
  CHECK(flushed.other.ask({"LLEN", "k"}) == ":100000\r\n");
  Restoring swapped;
  swapped.other.must({"SWAPDB", "0", "1"});
  swapped.other.must({"SET", "in", "0"});
  CHECK(swapped.reply() == "+OK\r\n");
  CHECK(swapped.client.ask({"EXISTS", "k", "in"}) == ":2\r\n");
  swapped.other.must({"SELECT", "1"});
  CHECK(swapped.other.ask({"DBSIZE"}) == ":0\r\n");
}

TEST_CASE("restore: a memory limit that is set meanwhile ends it, and nothing stays") {
  for (const bool string : {false, true}) {
    Restoring r({}, string ? repeated_string(4 << 20, "abc") : packed_hash(kMany));
    const uint64_t used = used_bytes(r.engine);
    r.engine.state().config.limits.memory_bytes = used + 1000;
    CHECK(r.reply() ==
          (string ? "+OK\r\n" : "-OOM command not allowed when used memory > 'maxmemory'.\r\n"));
    free_all(r.engine);
    if (!string) CHECK(r.other.ask({"DBSIZE"}) == ":0\r\n");
    CHECK(r.engine.state().memory.partial_bytes == 0);
  }
}

TEST_CASE("restore: a value that does not fit is rejected before it takes the memory") {
  Engine engine(session_config());
  TestClient client(engine);
  const std::string payload = repeated_string(4 << 20, "abc");
  const uint64_t before = used_bytes(engine);
  engine.state().config.limits.memory_bytes = before + (12U << 20U);
  CHECK(client.ask({"RESTORE", "k", "0", payload}).starts_with("-OOM"));
  engine.state().config.limits.memory_bytes = before + (13U << 20U);
  CHECK(client.ask({"RESTORE", "k", "0", payload}).empty());
  finish(engine, client);
  CHECK(client.received() == "+OK\r\n");
  CHECK(client.ask({"STRLEN", "k"}) == ":12582912\r\n");
}

TEST_CASE("restore: damage at the end of a large value leaves no key") {
  std::string elements = packed_element("f") + packed_element("v");
  for (size_t i = 0; i < kMany; ++i) elements += packed_element("f" + std::to_string(i)) + "\x01\x01";
  elements += packed_element("f") + packed_element("twice");
  for (const std::string& list : {listpack(elements), listpack(elements.substr(0, elements.size() - 1))}) {
    Restoring r({}, payload_of(rdb::kTypeHashListpack, rdb_text(list)));
    CHECK(r.reply() == "-ERR Bad data format\r\n");
    CHECK(r.other.ask({"DBSIZE"}) == ":0\r\n");
    CHECK(free_all(r.engine) > 100);
  }
  Engine engine(session_config());
  TestClient client(engine);
  std::string wrong = repeated_list(kMany);
  wrong.back() = static_cast<char>(wrong.back() ^ 1);
  CHECK(client.ask({"RESTORE", "k", "0", wrong}) == "-ERR DUMP payload version or checksum are wrong\r\n");
}

TEST_CASE("restore: a user that loses the right meanwhile gets an error and no key") {
  Engine engine(session_config());
  TestClient admin(engine);
  admin.must({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*"});
  TestClient client(engine);
  client.must({"AUTH", "u", "x"});
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany)}).empty());
  admin.must({"ACL", "SETUSER", "u", "resetkeys", "~other"});
  finish(engine, client);
  CHECK(client.received().starts_with("-NOPERM "));
  CHECK(admin.ask({"DBSIZE"}) == ":0\r\n");
  CHECK(client.ask({"PING"}) == "+PONG\r\n");
}

TEST_CASE(
    "restore: it stops during CLIENT PAUSE WRITE, without work for the loop, and continues after it") {
  for (const bool unpause : {false, true}) {
    Restoring r;
    r.other.must({"CLIENT", "PAUSE", "1000", "WRITE"});
    r.tick(2);
    CHECK(r.engine.next_deadline() == session_time(1000).mono);
    CHECK(r.other.ask({"EXISTS", "k"}) == ":0\r\n");
    CHECK(r.client.blocked());
    if (unpause) {
      r.other.must({"CLIENT", "UNPAUSE"});
      CHECK(r.reply() == "+OK\r\n");
    } else {
      Effects fx;
      r.engine.tick(session_time(1000), fx);
      CHECK(finish(r.engine, r.client, session_time(1000)) > 40);
      CHECK(r.client.received() == "+OK\r\n");
    }
    CHECK(r.other.ask({"EXISTS", "k"}) == ":1\r\n");
  }
}

TEST_CASE("restore: CLIENT REPLY applies to the reply at the end") {
  Engine engine(session_config());
  TestClient client(engine);
  CHECK(client.ask({"CLIENT", "REPLY", "SKIP"}).empty());
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany)}).empty());
  finish(engine, client);
  CHECK(client.received().empty());
  CHECK(client.ask({"LLEN", "k"}) == ":100000\r\n");
  client.ask({"CLIENT", "REPLY", "OFF"});
  CHECK(client.ask({"RESTORE", "k", "0", repeated_list(kMany), "REPLACE"}).empty());
  CHECK(client.blocked());
  finish(engine, client);
  CHECK(client.received().empty());
}

TEST_CASE("restore: a disk that fails meanwhile rejects it") {
  Restoring r;
  r.engine.availability().refusal = "MISCONF the disk";
  CHECK(r.reply() == "-MISCONF the disk\r\n");
  CHECK(r.other.ask({"EXISTS", "k"}) == ":0\r\n");
  CHECK(r.other.ask({"INFO", "errorstats"}).find("errorstat_MISCONF:count=1") != std::string::npos);
}

TEST_CASE("restore: several clients restore in turns; a watched key counts as changed at the end") {
  Engine engine(session_config());
  TestClient one(engine);
  TestClient two(engine);
  TestClient watcher(engine);
  watcher.must({"WATCH", "a"});
  CHECK(one.ask({"RESTORE", "a", "0", repeated_list(kMany)}).empty());
  CHECK(two.ask({"RESTORE", "b", "0", repeated_list(kMany / 10)}).empty());
  finish(engine, two);
  CHECK(one.blocked());
  finish(engine, one);
  CHECK(watcher.ask({"LLEN", "a"}) == ":100000\r\n");
  watcher.must({"MULTI"});
  CHECK(watcher.ask({"EXEC"}) == "*-1\r\n");
}

TEST_CASE("restore: a snapshot meanwhile does not have the key") {
  Restoring r;
  CHECK(r.engine.at_rest());
  r.other.must({"SET", "other", "x"});
  Snapshot snapshot(r.engine.state(), session_time(0), 1, false);
  CHECK(r.reply() == "+OK\r\n");
  while (!snapshot.step()) {
  }
  CHECK(snapshot.saved() == 1);
  CHECK(r.other.ask({"DBSIZE"}) == ":2\r\n");
}

}  // namespace
}  // namespace holdfast
