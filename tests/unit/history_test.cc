// The ring of lock events, and the sketch of contended keys.
#include <doctest/doctest.h>

#include <string>

#include "core/base/page_pool.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/removed_bodies.h"
#include "core/state/contended_keys.h"
#include "core/state/history.h"

namespace holdfast {

namespace {

void add(History& history, const std::string& key, const std::string& owner = "o",
         const std::string& note = "") {
  LockEventFacts facts;
  facts.at_us = 1000;
  history.add(key, owner, note) = facts;
}

std::string keys_of(const History& history) {
  std::string keys;
  for (uint64_t serial = history.oldest(); serial <= history.newest(); ++serial) {
    keys.append(history.at(serial).key).append(" ");
  }
  return keys;
}

}  // namespace

TEST_CASE("History: an empty ring has no event") {
  const History history(3);
  CHECK(history.oldest() == 1);
  CHECK(history.newest() == 0);
  CHECK(history.bytes() == 0);
}

TEST_CASE("History: the newest events replace the oldest, and serials continue") {
  History history(3);
  for (const char* key : {"a", "b", "c"}) add(history, key);
  CHECK(keys_of(history) == "a b c ");
  add(history, "d");
  CHECK(keys_of(history) == "b c d ");
  CHECK(history.oldest() == 2);
  CHECK(history.newest() == 4);
  history.check_invariants();
}

TEST_CASE("History: short and long texts are kept whole, up to the limit of keys") {
  History history(4);
  const std::string key(History::kMostKeyBytes, 'k');
  const std::string owner(History::kMostOwnerBytes, 'o');
  const std::string note(256, 'n');
  add(history, "k", "o", "n");
  add(history, key, owner, note);
  add(history, key + "x", owner, note);
  CHECK(history.at(1).note == "n");
  CHECK(history.at(2).key == key);
  CHECK(history.at(2).owner == owner);
  CHECK(history.at(2).note == note);
  CHECK(history.at(3).key == key);
  CHECK(history.at(3).key_bytes == key.size() + 1);
  history.check_invariants();
}

TEST_CASE("History: a string that is too long for an owner is no lock, and has no event") {
  History history(4);
  add(history, "k", std::string(History::kMostOwnerBytes + 1, 'o'));
  CHECK(history.newest() == 0);
}

TEST_CASE("History: an entry is copied as a block while it fits into a slot, else by its texts") {
  PagePool pool;
  RemovedBodies removed;
  Keyspace keys(1, pool, removed);
  for (size_t size = 60; size < 130; ++size) {
    History history(2);
    const std::string key(size, 'k');
    Keyspace::Found f = keys.find_or_insert(keys.key(key), EntryType::kString, "owner", {}).first;
    f->token = 7;
    history.add_hold(*f, 1000, {5}, 3, LockEvent::kReleased, 2);
    history.add_hold(*f, 2000, {6}, 4, LockEvent::kGranted, 2);
    keys.erase(f);
    CHECK(history.at(1).key == key);
    CHECK(history.at(1).key_bytes == size);
    CHECK(history.at(1).owner == "owner");
    CHECK(history.at(1).note.empty());
    CHECK(history.at(1).token == Token{7});
    CHECK(history.at(1).held() == DurationMs{5});
    CHECK(history.at(1).waited() == DurationMs{0});
    CHECK(history.at(1).conn == 3);
    CHECK(history.at(1).db == 2);
    CHECK(history.at(2).at_us == 2000);
    CHECK(history.at(2).held() == DurationMs{0});
    CHECK(history.at(2).waited() == DurationMs{6});
    history.check_invariants();
  }
}

TEST_CASE("History: the forms of slots replace one another") {
  PagePool pool;
  RemovedBodies removed;
  Keyspace keys(1, pool, removed);
  Keyspace::Found f = keys.find_or_insert(keys.key("k"), EntryType::kString, "owner", {}).first;
  History history(3);
  const std::string longer(300, 'l');
  for (int i = 0; i < 20; ++i) {
    add(history, longer, "o", "n");
    history.add_hold(*f, i, {}, 0, LockEvent::kGranted, 0);
    if (i % 3 == 0) add(history, "a", "b", "c");
    if (i == 10) history.set_limit(5);
    history.check_invariants();
  }
  CHECK(keys_of(history) == longer + " k a " + longer + " k ");
}

TEST_CASE("History: a smaller limit keeps the newest events, a larger one all") {
  History history(4);
  const std::string longer(300, 'l');
  for (const std::string& key : {std::string("a"), std::string("b"), longer, std::string("d")})
    add(history, key);
  history.set_limit(2);
  CHECK(keys_of(history) == longer + " d ");
  history.check_invariants();
  history.set_limit(1000);
  add(history, "e");
  CHECK(keys_of(history) == longer + " d e ");
  CHECK(history.newest() == 5);
  history.check_invariants();
  history.set_limit(0);
  CHECK_FALSE(history.on());
  CHECK(history.bytes() == 0);
  CHECK(history.oldest() > history.newest());
  history.set_limit(1);
  add(history, "f");
  add(history, "g");
  CHECK(keys_of(history) == "g ");
}

TEST_CASE("History: clear() forgets the events and their bytes; serials continue") {
  History history(10);
  add(history, std::string(500, 'k'));
  history.clear();
  CHECK(history.bytes() == 0);
  add(history, "a");
  CHECK(history.oldest() == 2);
  CHECK(keys_of(history) == "a ");
}

TEST_CASE("History: a million events through a ring take the memory of the ring") {
  constexpr size_t kEvents = 1000000;
  History history(1000);
  uint64_t full = 0;
  for (size_t i = 0; i < kEvents; ++i) {
    add(history, "key:" + std::to_string(i % 977), std::string(i % 7 == 0 ? 200 : 20, 'o'));
    if (i == 2000) full = history.bytes();
    if (i > 2000 && i % 1000 == 0) CHECK(history.bytes() <= full + full / 10);
  }
  CHECK(history.newest() == kEvents);
  history.check_invariants();
}

TEST_CASE("ContendedKeys: the sketch is exact while the keys fit") {
  ContendedKeys keys;
  keys.record(0, "a", {10}, true);
  keys.record(0, "a", {30}, false);
  keys.record(1, "a", {5}, true);
  REQUIRE(keys.find(0, "a") != nullptr);
  CHECK(keys.find(0, "a")->waits == 2);
  CHECK(keys.find(0, "a")->wait_ms == 40);
  CHECK(keys.find(0, "a")->max_wait_ms == 30);
  CHECK(keys.find(0, "a")->grants == 1);
  CHECK(keys.find(1, "a")->wait_ms == 5);
  CHECK(keys.find(2, "a") == nullptr);
}

TEST_CASE("ContendedKeys: a contended key stays among very many others, and the size is bounded") {
  ContendedKeys keys;
  for (int i = 0; i < 100000; ++i) {
    keys.record(0, "other:" + std::to_string(i), {1}, true);
    if (i % 10 == 0) keys.record(0, "hot", {100}, true);
  }
  CHECK(keys.keys().size() == ContendedKeys::kMostKeys);
  REQUIRE(keys.find(0, "hot") != nullptr);
  CHECK(keys.find(0, "hot")->wait_ms == 1000000);
  CHECK(keys.bytes() < 2 * ContendedKeys::kMostKeys * (sizeof(ContendedKey) + 20));
}

TEST_CASE("ContendedKeys: a key beyond the limit of its size is not counted") {
  ContendedKeys keys;
  keys.record(0, std::string(ContendedKeys::kMostKeyBytes, 'k'), {1}, true);
  keys.record(0, std::string(ContendedKeys::kMostKeyBytes + 1, 'k'), {1}, true);
  CHECK(keys.keys().size() == 1);
}

}  // namespace holdfast
