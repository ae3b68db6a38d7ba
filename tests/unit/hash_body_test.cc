// A hash of any size, and the change of an entry from the small form to it.
#include "core/keyspace/hash_body.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine_parts.h"
#include "core/lock/keys.h"
#include "core/state/effects.h"
#include "core/values/body_changes.h"
#include "core/values/hash_changes.h"

namespace holdfast {
namespace {

constexpr uint64_t kSeed = 7;

using Fields = std::map<std::string, std::string>;

Fields fields_of(const HashBody& body) {
  Fields fields;
  body.for_each([&](std::string_view f, std::string_view v) { CHECK(fields.emplace(f, v).second); });
  return fields;
}

void fill(HashBody& body, int from, int to) {
  for (int i = from; i < to; ++i) body.set("field" + std::to_string(i), std::to_string(i));
}

// An engine's state and a context, to do the work of a command.
struct World {
  World() : t{s, {{1000}, 0}, fx} {
    s.config.limits.hash_packed_entries = 2;
    s.config.limits.hash_packed_value_bytes = 4;
  }
  Keyspace& keys() { return t.keys(0); }
  Keyspace::Found find(std::string_view key) { return find_any(t, 0, keys().key(key)); }
  EntryType type(std::string_view key) { return type_of(*find(key)); }

  size_t set(std::string_view key, std::vector<std::string_view> pairs) {
    Keyspace::Found f = find(key);
    const size_t made = set_fields(t, {0, f}, keys().key(key), pairs, {});
    check();
    return made;
  }
  size_t erase(std::string_view key, std::vector<std::string_view> fields) {
    Keyspace::Found f = find(key);
    const size_t erased = erase_fields(t, {0, f}, keys().key(key), fields, {});
    check();
    return erased;
  }
  void check() { keys().check_invariants(); }

  EngineParts parts{Config{}};
  EngineState& s = parts.state;
  Effects fx;
  Context t;
};

}  // namespace

TEST_CASE("hash body: after random changes it equals a map, and bytes() equals a new body's") {
  std::mt19937 dice(1);
  HashBody body(kSeed);
  Fields model;
  for (int i = 0; i < 20000; ++i) {
    const std::string field = std::to_string(dice() % 300);
    if (dice() % 3 == 0) {
      CHECK(body.erase(field) == (model.erase(field) == 1));
    } else {
      const std::string value(dice() % 200, 'v');
      CHECK(body.set(field, value) == model.insert_or_assign(field, value).second);
    }
    const auto it = model.find(field);
    CHECK(body.find(field) ==
          (it == model.end() ? std::nullopt : std::optional<std::string_view>(it->second)));
    if (i % 1000 == 0) body.check_invariants();
  }
  body.check_invariants();
  CHECK(fields_of(body) == model);
  CHECK(body.size() == model.size());
  HashBody rebuilt(kSeed);
  for (const auto& [field, value] : model) rebuilt.set(field, value);
  CHECK(body.bytes() == rebuilt.bytes());
}

TEST_CASE("hash body: an emptied body counts no more bytes than a new one") {
  HashBody body(kSeed);
  fill(body, 0, 100);
  for (int i = 0; i < 100; ++i) body.erase("field" + std::to_string(i));
  CHECK(body.size() == 0);
  CHECK(body.bytes() == HashBody(kSeed).bytes());
}

TEST_CASE("hash body: the order depends on the fields, not on the order of insertion") {
  HashBody forth(kSeed);
  HashBody back(kSeed);
  fill(forth, 0, 1000);
  for (int i = 1000; i-- > 0;) fill(back, i, i + 1);
  std::vector<std::string> order[2];
  forth.for_each([&](std::string_view f, std::string_view) { order[0].emplace_back(f); });
  back.for_each([&](std::string_view f, std::string_view) { order[1].emplace_back(f); });
  CHECK(order[0] == order[1]);
}

TEST_CASE("hash body: a scan returns each field once, in steps of at least the count") {
  HashBody body(kSeed);
  fill(body, 0, 1000);
  for (const size_t count : {1U, 2U, 10U, 999U, 1000U, 1001U}) {
    std::multiset<std::string> met;
    uint64_t cursor = 0;
    size_t steps = 0;
    do {
      const size_t before = met.size();
      cursor = body.scan(cursor, count, [&](std::string_view f, std::string_view) { met.emplace(f); });
      CHECK((cursor == 0 || met.size() - before >= count));
      ++steps;
    } while (cursor != 0);
    CHECK(met.size() == 1000);
    CHECK(std::set<std::string>(met.begin(), met.end()).size() == 1000);
    CHECK(steps == (1000 + count - 1) / count);
  }
}

TEST_CASE("hash body: a scan returns every field that exists throughout") {
  HashBody body(kSeed);
  fill(body, 0, 500);
  std::set<std::string> met;
  uint64_t cursor = 0;
  int other = 1000;
  do {
    cursor = body.scan(cursor, 7, [&](std::string_view f, std::string_view) { met.emplace(f); });
    fill(body, other, other + 50);
    for (int i = other - 25; i < other; ++i) body.erase("field" + std::to_string(i));
    other += 50;
  } while (cursor != 0);
  for (int i = 0; i < 500; ++i) CHECK(met.contains("field" + std::to_string(i)));
}

TEST_CASE("hash body: a copy is equal and independent") {
  HashBody body(kSeed);
  fill(body, 0, 300);
  const auto copied = body.copy();
  auto* const copy = dynamic_cast<HashBody*>(copied.get());
  REQUIRE(copy != nullptr);
  copy->check_invariants();
  CHECK(fields_of(*copy) == fields_of(body));
  CHECK(copy->bytes() == body.bytes());
  copy->set("field1", "other");
  copy->erase("field2");
  CHECK(body.find("field1") == "1");
  CHECK(body.find("field2") == "2");
}

TEST_CASE("hash value: packed up to the limit of fields; beyond it a body, for good") {
  World w;
  CHECK(w.set("h", {"a", "1"}) == 1);
  CHECK(w.set("h", {"b", "2", "a", "3"}) == 1);
  CHECK(w.type("h") == EntryType::kHash);
  CHECK(w.set("h", {"c", "4", "a", "5"}) == 1);
  CHECK(w.type("h") == EntryType::kBigHash);
  CHECK(fields_of(*hash_body_of(*w.find("h"))) == Fields{{"a", "5"}, {"b", "2"}, {"c", "4"}});
  CHECK(w.erase("h", {"a", "b"}) == 2);
  CHECK(w.type("h") == EntryType::kBigHash);
  CHECK(w.erase("h", {"a", "c", "c"}) == 1);
  CHECK(!w.find("h"));
}

TEST_CASE("hash value: packed up to the limit of a field's or value's size") {
  World w;
  CHECK(w.set("h", {"four", "four"}) == 1);
  CHECK(w.type("h") == EntryType::kHash);
  CHECK(w.set("h", {"four", "fives"}) == 0);
  CHECK(w.type("h") == EntryType::kBigHash);
  CHECK(w.set("g", {"fives", ""}) == 1);
  CHECK(w.type("g") == EntryType::kBigHash);
}

TEST_CASE("hash value: a lowered limit applies from the next change on") {
  World w;
  w.set("h", {"a", "1", "b", "2"});
  w.s.config.limits.hash_packed_entries = 1;
  CHECK(w.type("h") == EntryType::kHash);
  CHECK(w.set("h", {"a", "3"}) == 0);
  CHECK(w.type("h") == EntryType::kBigHash);
}

TEST_CASE("hash value: used_bytes() follows a hash as it grows, is overwritten and is removed") {
  World w;
  const uint64_t tables = [&] {  // the tables of the first key remain
    w.set("h", {"a", "1"});
    w.erase("h", {"a"});
    return w.keys().used_bytes();
  }();
  const std::string value(10000, 'v');
  w.set("h", {"a", value});
  CHECK(w.keys().used_bytes() >= tables + 10000);
  w.set("h", {"b", value});
  CHECK(w.keys().used_bytes() >= tables + 20000);
  w.erase("h", {"a"});
  CHECK(w.keys().used_bytes() < tables + 11000);
  Keyspace::Found f = w.find("h");
  put_string(w.t, {0, f}, w.keys().key("h"), "s", {});
  CHECK(w.keys().used_bytes() < tables + 1000);
  remove_key(w.t, {0, f}, End::kDeleted);
  CHECK(w.keys().used_bytes() == tables);
}

TEST_CASE("hash value: a body moves to another key without a copy, over any value") {
  for (const bool over_hash : {false, true}) {
    World w;
    w.set("from", {"a", "1", "b", "2", "c", "3"});
    if (over_hash) w.set("to", {"long field", "x"});
    const HashBody* const body = hash_body_of(*w.find("from"));
    Keyspace::Found f = w.find("from");
    auto taken = release_body(w.keys(), f);
    CHECK(taken.get() == body);
    remove_key(w.t, {0, f}, End::kDeleted);
    const uint64_t without = w.keys().used_bytes();
    f = w.find("to");
    put_body(w.t, {0, f}, w.keys().key("to"), EntryType::kBigHash, std::move(taken), {});
    w.check();
    CHECK(hash_body_of(*w.find("to")) == body);
    CHECK(!w.find("from"));
    CHECK(w.keys().used_bytes() + 1000 > without + body->bytes());
  }
}

TEST_CASE("hash value: the deadline is kept, also a distant one and that of a large key") {
  for (const int64_t ttl : {int64_t{100}, kMaxTtlMs}) {
    for (const size_t key_size : {3U, 1023U, 1024U}) {
      World w;
      const std::string key(key_size, 'k');
      w.set(key, {"a", "1"});
      Keyspace::Found f = w.find(key);
      set_key_deadline(w.t, {0, f}, w.t.now.mono + DurationMs{ttl}, {});
      w.set(key, {"a", "2", "b", "3"});
      w.set(key, {"c", "long value"});
      CHECK(w.type(key) == EntryType::kBigHash);
      f = w.find(key);
      set_key_deadline(w.t, {0, f}, w.t.now.mono + DurationMs{ttl}, {});
      w.erase(key, {"a"});
      CHECK(key_deadline(*w.find(key)) == w.t.now.mono + DurationMs{ttl});
      CHECK(ttl_of(*w.find(key)).count == ttl);
      CHECK(fields_of(*hash_body_of(*w.find(key))) == Fields{{"b", "3"}, {"c", "long value"}});
    }
  }
}

}  // namespace holdfast
