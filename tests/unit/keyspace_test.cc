// Entries, their memory and the tables, against a plain map.
#include "core/keyspace/keyspace.h"
#include "core/keyspace/removed_bodies.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

constexpr TimeMs kStart{1000};

Keyspace::Found put(Keyspace& keys, const std::string& key, const std::string& value) {
  auto [f, made] = keys.find_or_insert(keys.key(key), EntryType::kString, value, kStart);
  if (!made) keys.rewrite(f, EntryType::kString, value);
  return f;
}

std::string text(size_t size, char c) { return std::string(size, c); }

// Returns keys of the first of the small tables.
std::vector<std::string> keys_of_first_table(const Keyspace& keys, size_t number) {
  constexpr uint64_t kShare = 380000;  // of 2^31
  std::vector<std::string> found;
  for (uint64_t i = 0; found.size() < number; ++i) {
    std::string key = "key:" + std::to_string(i);
    if (keys.key(key).hash >> 33U < kShare) found.push_back(std::move(key));
  }
  return found;
}

}  // namespace

TEST_CASE("entry: a 35-byte key with a 40-byte owner takes 112 bytes, expiry, token and history included") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  put(keys, "x", "y");
  const uint64_t before = keys.used_bytes();
  put(keys, text(35, 'k'), text(40, 'o'));
  const uint64_t table = keys.used_bytes() - before - 112;
  CHECK(table % 5 == 0);  // a slot and its control byte
  CHECK(table <= 15);
}

TEST_CASE("keyspace: tables that had very many entries become small again") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  put(keys, "x", "y");
  const uint64_t before = keys.used_bytes();
  constexpr int kKeys = 600000;
  for (int i = 0; i < kKeys; ++i) put(keys, "key:" + std::to_string(i), "v");
  for (int i = 0; i < kKeys; ++i) {
    Keyspace::Found f = keys.find(keys.key("key:" + std::to_string(i)));
    keys.erase(f);
    if (i % 100000 == 0) CHECK(keys.find(keys.key("key:" + std::to_string(kKeys - 1))));
  }
  keys.check_invariants();
  CHECK(keys.used_bytes() <= before + 4096 * 64 * 5);
}

TEST_CASE("entry: keys and values of all sizes around the limits of a block are read back whole") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  for (const size_t key_size : {0U, 1U, 1022U, 1023U, 1024U, 5000U}) {
    for (const size_t value_size : {0U, 1U, 127U, 128U, 255U, 256U, 2047U, 2048U, 100000U}) {
      const std::string key = text(key_size, static_cast<char>('a' + value_size % 20));
      Keyspace::Found f = put(keys, key, text(value_size, 'v'));
      keys.set_deadline(f, {5000}, {4000}, kStart);
      f->token = 42;
      for (const size_t other : {0U, 40U, 3000U, 2047U}) {
        keys.rewrite(f, EntryType::kString, text(other, 'w'));
        REQUIRE(value_of(*f) == text(other, 'w'));
        REQUIRE(key_of(*f) == key);
        REQUIRE((token_of(*f).value == 42 && deadline_of(*f).count == 5000 && ttl_of(*f).count == 4000));
      }
      keys.check_invariants();
    }
  }
}

TEST_CASE("entry: the last ttl is kept exactly, below, at and above 32 bits, and without an end") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  Keyspace::Found f = put(keys, "key", "owner");
  for (const int64_t ttl : {1LL, (1LL << 32) - 1, 1LL << 32, (1LL << 53) - 1, 5LL}) {
    keys.set_deadline(f, kStart + DurationMs{ttl}, {ttl}, kStart);
    CHECK(ttl_of(*f).count == ttl);
    CHECK(renewed_at(*f) == kStart);
    CHECK(value_of(*f) == "owner");
    keys.rewrite(f, EntryType::kString, "another");
    CHECK(ttl_of(*f).count == ttl);
    keys.rewrite(f, EntryType::kString, "owner");
  }
  keys.set_deadline(f, kNever, {0}, TimeMs{(int64_t{1} << 39) + 3});
  CHECK(ttl_of(*f).count == 0);
  CHECK(renewed_at(*f).count == (int64_t{1} << 39) + 3);
  CHECK(keys.timed() == 0);
}

TEST_CASE("keyspace: random changes agree with a map, and all memory is freed") {
  const uint64_t seed = 7;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(seed, pages, removed);
  std::map<std::string, std::string> plain;
  for (int step = 0; step < 60000; ++step) {
    const std::string key = "key:" + std::to_string(random() % 3000);
    if (random() % 3 == 0) {
      Keyspace::Found f = keys.find(keys.key(key));
      REQUIRE(static_cast<bool>(f) == plain.contains(key));
      if (f) keys.erase(f);
      plain.erase(key);
    } else {
      const std::string value(random() % 300, 'v');
      Keyspace::Found f = put(keys, key, value);
      keys.set_deadline(f, kStart + DurationMs{1 + static_cast<int64_t>(random() % 100000)}, {1}, kStart);
      plain[key] = value;
    }
    if (step % 10000 == 0) keys.check_invariants();
  }
  REQUIRE(keys.size() == plain.size());
  for (const auto& [key, value] : plain) REQUIRE(value_of(*keys.find(keys.key(key))) == value);
  while (keys.expire_due({1000000}, 100, [&](const Key& key) {
    Keyspace::Found f = keys.find(key);
    keys.erase(f);
  }) == 0) {
  }
  CHECK(keys.size() == 0);
}

TEST_CASE("keyspace: a scan returns every key that stays, while other keys change and the tables grow") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(3, pages, removed);
  for (int i = 0; i < 5000; ++i) put(keys, "stays:" + std::to_string(i), "v");
  std::set<std::string> met;
  uint64_t cursor = 0;
  int added = 0;
  do {
    cursor = keys.scan(cursor, 10, [&](const Entry& e) { met.emplace(key_of(e)); });
    for (int i = 0; i < 30; ++i) put(keys, "comes:" + std::to_string(added++), "v");
    if (Keyspace::Found f = keys.find(keys.key("comes:" + std::to_string(added / 2)))) keys.erase(f);
    REQUIRE(cursor < (uint64_t{1} << 48));
  } while (cursor != 0);
  for (int i = 0; i < 5000; ++i) REQUIRE(met.contains("stays:" + std::to_string(i)));
}

TEST_CASE("keyspace: a table saved in parts is saved once and as it was, whatever changes in between") {
  std::vector<std::string> names;
  for (const size_t number : {700U, 255U, 256U, 257U}) {
    CAPTURE(number);
    PagePool pages;
    RemovedBodies removed;
    Keyspace keys(1, pages, removed);
    if (names.empty()) names = keys_of_first_table(keys, 2 * number);
    for (size_t i = 0; i < number; ++i) put(keys, names[i], "before");
    std::map<std::string, std::string> saved;
    size_t handed = 0;
    keys.begin_save([&](Handle, const Entry& e) -> size_t {
      ++handed;
      saved.emplace(key_of(e), value_of(e));
      return 0;
    });
    size_t largest = 0;
    size_t next = 0;
    for (bool done = false; !done;) {
      const size_t before = handed;
      done = keys.save_step();
      largest = std::max(largest, handed - before);
      for (size_t i = 0; i < 40 && next < number; ++i, ++next) {  // the table grows in the meantime
        put(keys, names[number + next], "new");
        if (next % 2 == 0) {
          put(keys, names[next], text(next, 'v'));
        } else {
          Keyspace::Found f = keys.find(keys.key(names[next]));
          keys.erase(f);
        }
      }
    }
    keys.end_save();
    CHECK(largest == std::min(number, size_t{256}));
    CHECK(handed == number);
    CHECK(saved.size() == number);
    for (const auto& [key, value] : saved) REQUIRE(value == "before");
    keys.check_invariants();
  }
}

TEST_CASE("keyspace: its removal in steps ends and frees everything") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  for (int i = 0; i < 20000; ++i)
    put(keys, "key:" + std::to_string(i), text(i % 100 == 0 ? 5000 : 20, 'v'));
  int steps = 0;
  while (!keys.dismantle_step()) REQUIRE(++steps < 10000);
}

TEST_CASE("prefetching finds the entries that exist, and changes nothing") {
  PagePool pages;
  RemovedBodies removed;
  Keyspace keys(1, pages, removed);
  keys.prefetch_place(keys.key("a"));
  CHECK(keys.prefetch_entry(keys.key("a")) == 0);
  const std::vector<std::string> names = keys_of_first_table(keys, 300);
  const size_t present = 200;
  std::map<std::string, Handle> handles;
  for (size_t i = 0; i < present; ++i) {
    Keyspace::Found f = put(keys, names[i], "v");
    if (i % 2 == 0) keys.set_deadline(f, {5000 + static_cast<int64_t>(i)}, {4000}, kStart);
    handles[names[i]] = f.handle();
  }
  size_t others = 0;  // entries of one table that have the same seven bits
  for (const std::string& name : names) {
    keys.prefetch_place(keys.key(name));
    const Handle h = keys.prefetch_entry(keys.key(name));
    const auto own = handles.find(name);
    if (own != handles.end()) REQUIRE(h != 0);
    others += h != 0 && (own == handles.end() || own->second != h) ? 1 : 0;
    if (h != 0) keys.prefetch_timer(h);
  }
  CHECK(others < names.size() / 4);
  CHECK(keys.size() == present);
  keys.check_invariants();
}

}  // namespace holdfast
