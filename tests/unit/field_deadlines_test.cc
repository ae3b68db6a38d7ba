// Deadlines of fields: the container, the hash that owns it, and the expiry of very many fields in parts.
#include "core/keyspace/field_deadlines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine_parts.h"
#include "core/keyspace/hash_body.h"
#include "session.h"

namespace holdfast {
namespace {

using Model = std::map<std::string, int64_t>;

void compare(const FieldDeadlines& deadlines, const Model& model) {
  deadlines.check_invariants();
  CHECK(deadlines.size() == model.size());
  CHECK(deadlines.empty() == model.empty());
  TimeMs first = kNever;
  TimeMs last = kNever;
  for (const auto& [field, at] : model) {
    CHECK(deadlines.find(field).count == at);
    if (first == kNever || at < first.count) first = {at};
    if (last == kNever || at > last.count) last = {at};
  }
  CHECK(deadlines.first() == first);
  CHECK(deadlines.last() == last);
}

// Takes the fields of a body with their deadlines, and checks that none comes twice.
class Collected : public ElementSink {
 public:
  std::map<std::string, std::pair<std::string, TimeMs>> fields;
  void put(std::string_view field, std::string_view value) override { put_field(field, value, kNever); }
  void put_field(std::string_view field, std::string_view value, TimeMs deadline) override {
    CHECK(fields.emplace(field, std::pair(value, deadline)).second);
  }
};

std::map<std::string, std::pair<std::string, TimeMs>> content_of(const HashBody& body) {
  std::map<std::string, std::pair<std::string, TimeMs>> fields;
  body.for_each([&](std::string_view field, std::string_view value) {
    fields.emplace(field, std::pair(value, body.deadline_of(field)));
  });
  return fields;
}

void change_at_random(HashBody& body, std::mt19937& dice) {
  const std::string field = std::to_string(dice() % 300);
  switch (dice() % 4) {
    case 0:
      body.erase(field);
      break;
    case 1:
      body.set(field, std::string(dice() % 30, 'v'));
      break;
    default:
      body.set_deadline(field, dice() % 4 == 0 ? kNever : TimeMs{static_cast<int64_t>(dice() % 50)},
                        kNever);
  }
  if (dice() % 50 == 0) body.erase_due({10}, 3);
  body.drop_empty_deadlines();
}

std::vector<std::string> hash_of(int fields, const std::string& key) {
  std::vector<std::string> words = {"HSET", key};
  for (int i = 0; i < fields; ++i) words.insert(words.end(), {"f" + std::to_string(i), "v"});
  return words;
}

std::vector<std::string> expiry_of(int fields, const std::string& key) {
  std::vector<std::string> words = {"HPEXPIRE", key, "100", "FIELDS", std::to_string(fields)};
  for (int i = 0; i < fields; ++i) words.push_back("f" + std::to_string(i));
  return words;
}

}  // namespace

TEST_CASE("field deadlines: after random changes they equal a map, and the first one is the earliest") {
  std::mt19937 dice(1);
  FieldDeadlines deadlines;
  Model model;
  for (int i = 0; i < 5000; ++i) {
    const std::string field(dice() % 40, static_cast<char>('a' + dice() % 5));
    const TimeMs at = dice() % 3 == 0 ? kNever : TimeMs{static_cast<int64_t>(dice() % 100)};
    deadlines.set(field, at);
    if (at == kNever) {
      model.erase(field);
    } else {
      model[field] = at.count;
    }
    if (i % 10 == 0) compare(deadlines, model);
  }
  compare(*deadlines.copy(), model);
}

TEST_CASE("field deadlines: they are freed in parts, and bytes() shrinks to that of an empty one") {
  FieldDeadlines deadlines;
  for (int i = 0; i < 2000; ++i) deadlines.set("field" + std::to_string(i), {i});
  const uint64_t all = deadlines.bytes();
  CHECK_FALSE(deadlines.free_some());
  CHECK(deadlines.bytes() < all);
  CHECK(deadlines.size() > 1000);
  while (!deadlines.free_some()) {
  }
  CHECK(deadlines.bytes() == FieldDeadlines().bytes());
}

TEST_CASE("hash body: a new value has no deadline, and an erased field none either") {
  HashBody body(7);
  body.set("f", "1");
  body.set("g", "1");
  const uint64_t untimed = body.bytes();
  CHECK(body.set_deadline("f", {100}, {900}));
  CHECK(body.set_deadline("g", {50}, {900}));
  CHECK_FALSE(body.set_deadline("x", {50}, {900}));
  CHECK(body.deadlines()->of_key == TimeMs{900});
  CHECK_FALSE(body.all_due({99}));
  CHECK(body.all_due({100}));
  body.set("f", "2");
  CHECK_FALSE(body.all_due({100}));
  CHECK(body.deadline_of("f") == kNever);
  body.erase("g");
  CHECK(body.deadlines()->empty());
  body.set("g", "1");
  body.drop_empty_deadlines();
  CHECK(body.deadlines() == nullptr);
  CHECK(body.bytes() == untimed);
}

TEST_CASE("hash body: due fields are erased in the order of their deadlines, at most so many") {
  HashBody body(7);
  for (const auto* field : {"a", "b", "c", "d"}) body.set(field, "v");
  body.set_deadline("a", {30}, kNever);
  body.set_deadline("b", {10}, kNever);
  body.set_deadline("c", {20}, kNever);
  CHECK(body.erase_due({9}, 9).empty());
  CHECK(body.erase_due({30}, 2) == std::vector<std::string>{"b", "c"});
  CHECK(body.erase_due({29}, 9).empty());
  CHECK(body.erase_due({30}, 9) == std::vector<std::string>{"a"});
  CHECK(body.size() == 1);
}

TEST_CASE("hash body: saved in parts, each field has the value and deadline that it had at the beginning") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    HashBody body(seed);
    for (int i = 0; i < 400; ++i) change_at_random(body, dice);
    const auto before = content_of(body);
    Collected saved;
    body.begin_save(saved);
    while (!body.save_some(dice() % 20 + 1)) {
      for (int i = 0; i < 10; ++i) change_at_random(body, dice);
    }
    body.end_save();
    CHECK(saved.fields == before);
    body.check_invariants();
  }
}

TEST_CASE("field expiry: a loop iteration erases a bounded part of very many due fields") {
  constexpr int kFields = 20000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  Effects fx;
  engine.tick(session_time(99), fx);
  CHECK(engine.state().stats.expired_fields == 0);
  uint64_t before = 0;
  int ticks = 0;
  for (; engine.state().stats.expired_fields < kFields; ++ticks) {
    engine.tick(session_time(100), fx);
    const uint64_t erased = engine.state().stats.expired_fields - before;
    CHECK(erased > 0);
    CHECK(erased < 200);
    before += erased;
    REQUIRE(engine.next_deadline().has_value() == (before < kFields));
  }
  CHECK(ticks > kFields / 200);
  engine.check_invariants();
  c.at(session_time(100));
  CHECK(c.ask({"HLEN", "h"}) == ":1\r\n");
}

TEST_CASE("field expiry: an access sees no due field while the rest waits for its part") {
  constexpr int kFields = 5000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  Effects fx;
  engine.tick(session_time(100), fx);
  c.at(session_time(100));
  CHECK(c.ask({"HLEN", "h"}) == ":1\r\n");
  engine.check_invariants();
  CHECK_FALSE(engine.next_deadline().has_value());
}

TEST_CASE("field expiry: a hash of which all fields are due goes as a whole, and is freed in parts") {
  constexpr int kFields = 5000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields, "h"));
  c.must(expiry_of(kFields, "h"));
  c.at(session_time(100));
  CHECK(c.ask({"EXISTS", "h"}) == ":0\r\n");
  CHECK(engine.state().removed.size() == 1);
  Effects fx;
  for (int i = 0; i < 2 * kFields / 512 + 3; ++i) engine.tick(session_time(100), fx);
  CHECK(engine.state().removed.size() == 0);
  CHECK(engine.state().removed.bytes() == 0);
}

}  // namespace holdfast
