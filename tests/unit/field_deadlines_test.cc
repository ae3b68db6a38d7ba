// Deadlines of fields: the container, the hash that owns it, and the expiry of very many fields in parts.
#include "core/keyspace/field_deadlines.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/event_flags.h"
#include "core/engine/engine_parts.h"
#include "core/keyspace/hash_body.h"
#include "core/lock/holds.h"
#include "session.h"

namespace holdfast {
namespace {

using Model = std::map<std::string, int64_t>;

// `past`: the fields that are due then are hidden.
void compare(const HashBody& body, const Model& model, int64_t past) {
  body.check_invariants();
  TimeMs first = kNever;
  TimeMs last = kNever;
  TimeMs next = kNever;
  size_t hidden = 0;
  for (const auto& [field, at] : model) {
    const bool over = at <= past;
    CHECK(body.find(field).has_value() != over);
    CHECK(body.deadline_of(field) == (over ? kNever : TimeMs{at}));
    hidden += over ? 1 : 0;
    if (first == kNever || at < first.count) first = {at};
    if (last == kNever || at > last.count) last = {at};
    if (!over && (next == kNever || at < next.count)) next = {at};
  }
  const FieldDeadlines* deadlines = body.deadlines();
  REQUIRE((deadlines == nullptr) == model.empty());
  if (deadlines == nullptr) return;
  CHECK(deadlines->size() == model.size());
  CHECK(deadlines->hidden() == hidden);
  CHECK(deadlines->first() == first);
  CHECK(deadlines->last() == last);
  CHECK(deadlines->next() == (hidden > 0 ? TimeMs{0} : next));
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
  if (dice() % 50 == 0) {
    body.hide_due({10});
    body.erase_hidden(3, {});
  }
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

TEST_CASE("field deadlines: after random changes they equal a map, and due fields are hidden") {
  std::mt19937 dice(1);
  HashBody body(7);
  Model model;
  int64_t past = -1;
  for (int i = 0; i < 5000; ++i) {
    const std::string field(dice() % 40, static_cast<char>('a' + dice() % 5));
    const TimeMs at = dice() % 3 == 0 ? kNever : TimeMs{past + 1 + static_cast<int64_t>(dice() % 100)};
    body.set(field, "v");
    body.set_deadline(field, at, kNever);
    if (at == kNever) {
      model.erase(field);
    } else {
      model[field] = at.count;
    }
    if (dice() % 20 == 0) body.hide_due({past += static_cast<int64_t>(dice() % 10)});
    if (dice() % 20 == 0) {
      for (const std::string& erased : body.erase_hidden(dice() % 5, {})) CHECK(model.erase(erased) == 1);
    }
    body.drop_empty_deadlines();
    if (i % 10 == 0) compare(body, model, past);
  }
  std::erase_if(model, [&](const auto& timed) { return timed.second <= past; });
  const auto copied = body.copy();
  compare(static_cast<const HashBody&>(*copied), model, -1);
}

TEST_CASE("field deadlines: they are freed in parts with their hash, and bytes() shrinks") {
  HashBody body(7);
  for (int i = 0; i < 100000; ++i) {
    body.set("field" + std::to_string(i), "v");
    body.set_deadline("field" + std::to_string(i), {i}, kNever);
  }
  int parts = 0;
  for (uint64_t before = body.bytes(); !body.free_some(); ++parts) {
    CHECK(body.bytes() < before);
    before = body.bytes();
  }
  CHECK(parts > 150);
  CHECK(body.bytes() < 100000);
}

TEST_CASE("hash body: a hidden field is missing, and a new value for it is that of a new field") {
  HashBody body(7);
  for (const auto* field : {"a", "b", "c"}) body.set(field, "v");
  for (const auto* field : {"a", "b"}) body.set_deadline(field, {10}, kNever);
  CHECK(body.hide_due({9}) == 0);
  CHECK(body.hide_due({10}) == 2);
  CHECK(body.hide_due({10}) == 0);
  CHECK(body.visible() == 1);
  CHECK(body.size() == 3);
  CHECK_FALSE(body.erase("a"));
  CHECK_FALSE(body.set_deadline("a", {50}, kNever));
  CHECK_FALSE(body.find_pair("a"));
  CHECK(content_of(body).size() == 1);
  size_t met = 0;
  CHECK(body.scan(0, 10, [&](std::string_view field, std::string_view) {
    CHECK(field == "c");
    ++met;
  }) == 0);
  CHECK(met == 1);
  CHECK(body.set("a", "other"));
  CHECK(body.find("a") == "other");
  CHECK(body.visible() == 2);
  CHECK(body.deadlines()->hidden() == 1);
  body.check_invariants();
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

TEST_CASE("hash body: hidden fields are erased in the order of their deadlines, at most so many") {
  HashBody body(7);
  for (const auto* field : {"a", "b", "c", "d"}) body.set(field, "v");
  body.set_deadline("a", {30}, kNever);
  body.set_deadline("b", {10}, kNever);
  body.set_deadline("c", {20}, kNever);
  body.hide_due({9});
  CHECK(body.erase_hidden(9, {40}).empty());
  body.hide_due({30});
  CHECK(body.erase_hidden(2, {40}) == std::vector<std::string>{"b", "c"});
  CHECK(body.deadlines()->next() == TimeMs{40});
  CHECK(body.erase_hidden(9, {41}) == std::vector<std::string>{"a"});
  CHECK(body.deadlines()->next() == kNever);
  CHECK(body.size() == 1);
}

TEST_CASE("hash body: saved in parts, each field has the value and deadline that it had at the beginning") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    HashBody body(seed);
    for (int i = 0; i < 400; ++i) change_at_random(body, dice);
    body.hide_due({10});
    const auto before = content_of(body);
    const size_t size = body.size();
    Collected saved;
    body.begin_save(saved);
    while (!body.save_some(dice() % 20 + 1)) {
      for (int i = 0; i < 10; ++i) change_at_random(body, dice);
    }
    body.end_save();
    CHECK(saved.fields.size() == size);  // with the hidden ones, which are due
    std::erase_if(saved.fields, [](const auto& field) { return is_due(field.second.second, {10}); });
    CHECK(saved.fields == before);
    body.check_invariants();
  }
}

TEST_CASE("field expiry: a loop iteration erases a bounded part, and others of the database do not wait") {
  constexpr size_t kFields = 20000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  for (int i = 0; i < 100; ++i) c.must({"SET", "k" + std::to_string(i), "v", "PX", "100"});
  Effects fx;
  engine.tick(session_time(99), fx);
  CHECK(engine.state().stats.expired_fields == 0);
  engine.tick(session_time(100), fx);
  CHECK(engine.state().stats.expired_fields == kFields);  // no client sees one
  CHECK(engine.state().stats.expired_keys == 100);
  const auto* const body = hash_body_of(*engine.state().dbs[0]->find(engine.state().dbs[0]->key("h")));
  int64_t at = 100;
  for (size_t before = body->size(); body->size() > 1; before = body->size()) {
    REQUIRE(engine.next_deadline() == session_time(++at).mono);
    engine.tick(session_time(at), fx);
    CHECK(body->size() < before);
    CHECK(before - body->size() <= 128);
  }
  engine.check_invariants();
  CHECK_FALSE(engine.next_deadline().has_value());
  c.at(session_time(at));
  CHECK(c.ask({"HLEN", "h"}) == ":1\r\n");
}

TEST_CASE(
    "field expiry: an access erases few due fields and sees none, while the rest waits for its part") {
  constexpr size_t kFields = 5000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  c.at(session_time(100));
  CHECK(c.ask({"HLEN", "h"}) == ":1\r\n");
  const auto* const body = hash_body_of(*engine.state().dbs[0]->find(engine.state().dbs[0]->key("h")));
  CHECK(body->size() == kFields + 1 - kFieldsOfLookUp);
  CHECK(c.ask({"HGET", "h", "f4999"}) == "$-1\r\n");
  CHECK(c.ask({"HKEYS", "h"}) == "*1\r\n$5\r\nf5000\r\n");
  CHECK(c.ask({"HDEL", "h", "f4999"}) == ":0\r\n");
  CHECK(c.ask({"HSETNX", "h", "f4999", "new"}) == ":1\r\n");
  CHECK(c.ask({"HTTL", "h", "FIELDS", "2", "f4998", "f4999"}) == "*2\r\n:-2\r\n:-1\r\n");
  CHECK(c.ask({"HDEL", "h", "f4999", "f5000"}) == ":2\r\n");
  CHECK(c.ask({"EXISTS", "h"}) == ":0\r\n");
  CHECK(engine.state().removed.size() == 1);
  engine.check_invariants();
}

TEST_CASE("field expiry: DBSIZE and KEYS show no key of due fields, and erase none") {
  constexpr size_t kFields = 5000;
  Engine engine(session_config());
  TestClient c(engine);
  c.must(hash_of(kFields, "all"));
  c.must(expiry_of(kFields, "all"));
  c.must(hash_of(kFields + 1, "some"));
  c.must(expiry_of(kFields, "some"));
  c.at(session_time(100));
  CHECK(c.ask({"KEYS", "*"}) == "*1\r\n$4\r\nsome\r\n");
  CHECK(c.ask({"DBSIZE"}) == ":1\r\n");
  CHECK(engine.state().stats.expired_fields == 2 * kFields);
  engine.check_invariants();
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

TEST_CASE("field expiry: after a replay hidden fields are due, and a new value of one has no deadline") {
  constexpr size_t kFields = 5000;
  Engine engine(session_config());
  engine.keep_journal();
  TestClient c(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  c.at(session_time(100));
  c.must({"HSET", "h", "f4999", "new"});
  CHECK(c.ask({"HDEL", "h", "f4998"}) == ":0\r\n");
  Engine again(session_config());
  REQUIRE(again.replay(std::string(engine.journal_records()), session_time(100)).empty());
  again.finish_loading(session_time(100));
  TestClient d(again, session_time(100));
  CHECK(d.ask({"HLEN", "h"}) == ":2\r\n");
  CHECK(d.ask({"HGET", "h", "f4999"}) == "$3\r\nnew\r\n");
  CHECK(d.ask({"HPTTL", "h", "FIELDS", "1", "f4999"}) == "*1\r\n:-1\r\n");
  again.check_invariants();
}

TEST_CASE("field expiry: WATCH and hexpired see the end of fields once, not the erasure of each part") {
  constexpr size_t kFields = 500;
  Config config = session_config();
  config.notify_flags = kNotifyHash | kNotifyKeyevent;
  Engine engine(std::move(config));
  TestClient c(engine);
  TestClient events(engine);
  c.must(hash_of(kFields + 1, "h"));
  c.must(expiry_of(kFields, "h"));
  events.must({"SUBSCRIBE", "__keyevent@0__:hexpired"});
  c.at(session_time(100));
  CHECK(c.ask({"HLEN", "h"}) == ":1\r\n");
  CHECK(events.received().ends_with("$1\r\nh\r\n"));
  c.must({"WATCH", "h"});
  Effects fx;
  int64_t at = 101;
  for (; engine.next_deadline().has_value(); ++at) engine.tick(session_time(at), fx);
  CHECK(at > 103);
  CHECK(events.received().empty());
  c.at(session_time(at));
  c.must({"MULTI"});
  c.must({"PING"});
  CHECK(c.ask({"EXEC"}) == "*1\r\n+PONG\r\n");
}

}  // namespace holdfast
