// Clients of an engine, driven by a test or at random from one seed, and helpers for tests of the disk
// formats: an engine with a journal, and copies of it made from its records.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "simulation/dice.h"

namespace holdfast {

// The engine's clock and the wall clock; both advance together.
inline Now session_time(int64_t ms) { return {{5000 + ms}, 1000000000000000 + ms * 1000}; }

inline Config session_config() {
  Config c;
  c.hash_seed = 7;
  c.limits.max_ended_leases = 8;
  c.session_grace = {20};
  c.random = [n = uint8_t{0}](std::span<uint8_t> bytes) mutable {
    for (uint8_t& b : bytes) b = n++;
  };
  return c;
}

// One client.
class TestClient {
 public:
  explicit TestClient(Engine& engine, Now now = session_time(0))
      : engine_(engine), id_(engine.open("127.0.0.1:1", "127.0.0.1:2", now)), now_(now) {}

  void at(Now now) { now_ = now; }
  bool blocked() const { return engine_.blocked(id_); }
  std::string ask(const std::vector<std::string>& words) {
    const std::vector<std::string_view> argv(words.begin(), words.end());
    engine_.apply(id_, argv, now_, fx_);
    return received();
  }
  // Sends a request that must succeed.
  void must(const std::vector<std::string>& words) {
    const std::string reply = ask(words);
    INFO(words[0], ": ", reply);
    REQUIRE_FALSE(reply.starts_with("-"));
  }
  std::string received() {
    fx_.clear();
    Buffer& out = engine_.output(id_);
    std::string text(out.view());
    out.consume(out.size());
    return text;
  }
  void disconnect() { engine_.drop(id_, now_, fx_); }

 private:
  Engine& engine_;
  ConnId id_;
  Now now_;
  Effects fx_;
};

// Sends random requests of every kind that changes persistent state, on few keys, so that they collide.
class RandomSession {
 public:
  enum class Clock { kSteady, kIsSet };  // the wall clock's behaviour

  RandomSession(Engine& engine, uint64_t seed, Clock clock = Clock::kSteady)
      : engine_(engine), dice_(seed), clock_(clock) {
    for (int i = 0; i < 4; ++i) clients_.push_back(std::make_unique<TestClient>(engine, now()));
  }

  Now now() const {
    const Now now = session_time(ms_);
    return now.with_ahead_ms(now.ahead_ms() + set_ms_);
  }

  void step() {
    const uint64_t kind = dice_.below(40);
    if (kind < 6) return pass();
    auto& client = clients_[dice_.below(clients_.size())];
    client->at(now());
    if (kind == 6 || client->blocked()) {
      if (kind < 9) replace(client);
      return;
    }
    if (kind == 7) return transaction(*client);
    client->ask(request());
  }

 private:
  using Words = std::vector<std::string>;

  void pass() {
    ms_ += dice_.between(0, 30);
    if (clock_ == Clock::kIsSet && dice_.one_in(4)) set_ms_ = dice_.between(-100000, 100000);
    if (dice_.one_in(3)) return;
    Effects fx;
    engine_.tick(now(), fx);
    for (const auto& client : clients_) client->received();
  }
  void replace(std::unique_ptr<TestClient>& client) {
    client->disconnect();
    client = std::make_unique<TestClient>(engine_, now());
  }
  void transaction(TestClient& client) {
    client.ask({"MULTI"});
    for (int i = 0; i < 4; ++i) client.ask(request());
    client.ask({"EXEC"});
  }

  std::string key() { return dice_.one_in(12) ? std::string(1100, 'k') : "k" + number(8); }
  std::string hash() { return "h" + number(3); }
  std::string list() { return "list" + number(3); }
  std::string any_key() { return dice_.one_in(3) ? dice_.one_in(3) ? list() : hash() : key(); }
  std::string owner() { return "o" + number(4); }
  std::string number(uint64_t below) { return std::to_string(dice_.below(below)); }
  std::string ttl() {
    if (dice_.one_in(12)) return "5000000000";  // over 49 days
    return std::to_string(dice_.between(1, 120));
  }
  std::string value() {
    return dice_.one_in(8) ? std::string(2050 + dice_.below(9), 'v') : "v" + number(4);
  }

  Words request() {
    const uint64_t kind = dice_.below(100);
    if (kind < 30) return lock();
    if (kind < 42) return end_of_lock();
    if (kind < 54) return string();
    if (kind < 64) return of_hash();
    if (kind < 74) return of_list();
    if (kind < 84) return lease();
    if (kind < 97) return of_key();
    return of_database();
  }
  Words lock() {
    Words w = {"LOCK", key(), owner(), dice_.one_in(6) ? "0" : ttl()};
    const uint64_t kind = dice_.below(4);
    if (kind == 0) w.emplace_back("SHARED");
    if (kind == 1) w.insert(w.end(), {"LIMIT", std::to_string(1 + dice_.below(3))});
    if (dice_.one_in(4)) w.insert(w.end(), {"DELAY", std::to_string(dice_.between(1, 60))});
    if (dice_.one_in(5)) w.emplace_back("SESSION");
    if (dice_.one_in(6)) w.insert(w.end(), {"WAIT", std::to_string(dice_.between(1, 40))});
    if (dice_.one_in(10)) w.insert(w.end(), {"TOKEN", "999000"});
    if (dice_.one_in(5)) w.insert(w.end(), {"NOTE", dice_.one_in(4) ? "" : "why" + number(5)});
    return w;
  }
  Words end_of_lock() {
    switch (dice_.below(6)) {
      case 0:
        return {"RENEW", key(), owner(), ttl()};
      case 1:
        return {"RENEW", key(), owner()};
      case 2:
        return {"LOCKS", dice_.one_in(2) ? "BREAK" : "REVOKE", key()};
      case 3:
        return {"FENCE", key(), owner(), "500000"};
      default:
        return {"UNLOCK", key(), owner()};
    }
  }
  Words string() {
    switch (dice_.below(6)) {
      case 0:
        return {"SET", key(), value(), "PX", ttl()};
      case 1:
        return {"SET", key(), value(), "KEEPTTL"};
      case 2:
        return {"APPEND", key(), value()};
      case 3:
        return {"INCR", "n" + number(3)};
      case 4:
        return {"MSET", key(), value(), key(), value()};
      default:
        return {"SET", any_key(), value()};
    }
  }
  Words of_hash() {
    Words w = {"HSET", hash()};
    switch (dice_.below(8)) {
      case 0:  // too many to stay packed
        for (int i = 0; i < 600; ++i) w.insert(w.end(), {"f" + std::to_string(i), "x"});
        return w;
      case 1:
        return {"HSET", hash(), "holdfast:lock", "1", "o:" + owner(), "1 1 -1 0 0 0 0 0"};
      case 2:
        return {"HINCRBY", hash(), "n" + number(3), "5"};
      case 3:
        return {"HSET", hash(), "long", std::string(100, 'w')};
      case 4:
      case 5:
        return {"HDEL", hash(), "f" + number(8), "f" + number(8), "n0", "long"};
      default:
        return {"HSET", hash(), "f" + number(8), "v" + number(100), "f" + number(8), ""};
    }
  }
  Words of_list() {
    Words w = {dice_.one_in(2) ? "LPUSH" : "RPUSH", list()};
    switch (dice_.below(10)) {
      case 0:
        for (int i = 0; i < 3000; ++i) w.push_back("element" + std::to_string(i % 7));
        return w;
      case 1:
        return {"LREM", list(), std::to_string(dice_.between(-2, 2)), "element" + number(7)};
      case 2:
        return {"LSET", list(), std::to_string(dice_.between(-9, 9)), value()};
      case 3:
        return {"LINSERT", list(), "AFTER", "element" + number(7), value()};
      case 4:
        return {"LTRIM", list(), number(5), dice_.one_in(4) ? "3" : "-2"};
      case 5:
        return {dice_.one_in(2) ? "LPOP" : "RPOP", list(), number(20)};
      case 6:
        return {"LMOVE", list(), list(), dice_.one_in(2) ? "LEFT" : "RIGHT", "LEFT"};
      case 7:
        return {"BLPOP", list(), list(), "0.01"};
      default:
        w.insert(w.end(), {value(), number(100)});
        return w;
    }
  }
  Words lease() {
    const std::string id = "l" + number(12);
    switch (dice_.below(6)) {
      case 0:
        return {"LEASE", "CONFIRM", id};
      case 1:
        return {"LEASE", "CANCEL", id};
      case 2:
        return {"LEASE", "RENEW", id, ttl()};
      default:
        return {"LEASE", "GRANT", id, ttl(), "d" + number(6), "doc", "e" + number(6), "doc"};
    }
  }
  Words of_key() {
    switch (dice_.below(8)) {
      case 0:
        return {"DEL", any_key(), any_key()};
      case 1:
        return {"PEXPIRE", any_key(), ttl()};
      case 2:
        return {"PERSIST", any_key()};
      case 3:
        return {"RENAME", any_key(), any_key()};
      case 4:
        return {"DEL", "d" + number(6)};
      case 5:
        return {"EVAL",
                "redis.call('set', KEYS[1], 'a', 'px', 20) redis.call('del', KEYS[1]) "
                "redis.call('set', KEYS[1], 'b') return redis.call('lock', KEYS[2], 'o1', 50)",
                "2", key(), key()};
      case 6:
        return {"PEXPIRE", any_key(), "0"};
      default:
        return {"SELECT", number(3)};
    }
  }
  Words of_database() {
    switch (dice_.below(6)) {
      case 0:
        return {"FLUSHALL"};
      case 1:
        return {"FLUSHDB"};
      default:
        return {"SWAPDB", number(3), number(3)};
    }
  }

  Engine& engine_;
  simulation::Dice dice_;
  Clock clock_;
  int64_t ms_ = 0;
  int64_t set_ms_ = 0;  // how far the wall clock is set ahead, in ms
  std::vector<std::unique_ptr<TestClient>> clients_;
};

}  // namespace holdfast
