// The requests that the generator sends.
#include <string>

#include "server_generator.h"

namespace holdfast::simulation {

// Returns an owner, in most cases one that holds the key.
std::string ServerGenerator::holder_of(const std::string& key) {
  if (!world_->has_view() && dice_.one_in(4)) return owner();
  std::vector<std::string> holders;
  if (world_->has_view()) {
    for (const Record& record : world_->view()) {
      if (record.key == key && !record.hash && !record.delay) holders.push_back(record.owner);
    }
  }
  return holders.empty() || dice_.one_in(4) ? owner() : dice_.pick(holders);
}

std::string ServerGenerator::ttl() {
  const uint64_t choice = dice_.below(100);
  if (choice < 12) return "0";
  if (choice < 25) return std::to_string(dice_.between(1, 50));
  if (choice < 50) return std::to_string(dice_.between(100, 5000));
  if (choice < 80) return std::to_string(dice_.between(10, 120) * 1000);
  if (choice < 95) return std::to_string(dice_.pick<int64_t>({200'000, 600'000, 3'600'000}));
  return std::to_string(dice_.pick<int64_t>({86'400'000, 9007199254740991}));
}

// An owner of a request by ticket.
std::string ServerGenerator::attempt() {
  return "s" + std::to_string(dice_.below(4)) + "." + std::to_string(dice_.below(5));
}

Words ServerGenerator::ticket() {
  const std::string k = key();
  const std::string owner = dice_.one_in(3) ? holder_of(k) : attempt();
  const std::string token = std::to_string(world_->now_us() + dice_.between(0, 1'000'000));
  const uint64_t choice = dice_.below(8);
  if (choice == 0) return {"LOCKS", "YIELD", k, owner, token};
  if (choice == 1) return {"LOCKS", "HEARTBEAT", std::to_string(dice_.between(0, 10'000'000))};
  if (choice == 2) return {"RENEW", k, owner, ttl(), "TOKEN", token};
  if (choice == 3) return {"UNLOCK", k, owner};
  if (choice == 4) return {"HELLO", "3"};
  Words words = {"LOCK",   k,
                 owner,    std::to_string(dice_.between(1, 3000)),
                 "TICKET", std::to_string(world_->now_us() + dice_.between(-1'000'000, 1'000'000))};
  if (happens(odds_.shared)) words.emplace_back("SHARED");
  if (dice_.one_in(3)) words.insert(words.end(), {"HAS", token});
  if (dice_.one_in(3)) words.insert(words.end(), {"OVER", attempt()});
  if (dice_.one_in(8)) words.emplace_back("PROVISIONAL");
  return words;
}

Words ServerGenerator::lock() {
  if (dice_.one_in(6)) return ticket();
  const std::string k = key();
  Words words = {"LOCK", k, dice_.one_in(5) ? holder_of(k) : owner(), happens(odds_.forever) ? "0" : ttl()};
  if (dice_.one_in(40)) words[2] = "*";
  if (happens(odds_.shared)) {
    words.emplace_back("SHARED");
  } else if (happens(odds_.limit)) {
    words.insert(words.end(), {"LIMIT", std::to_string(dice_.between(1, 3))});
  }
  if (happens(odds_.wait)) {
    words.insert(words.end(), {"WAIT", std::to_string(dice_.between(1, 3000))});
    if (dice_.one_in(2)) words.emplace_back("ASYNC");
  }
  if (happens(odds_.session)) words.emplace_back("SESSION");
  if (happens(odds_.delay))
    words.insert(words.end(), {"DELAY", std::to_string(dice_.pick<int>({0, 5, 3000, 60'000}))});
  if (happens(odds_.token)) {
    const int64_t ahead_us = dice_.pick<int64_t>({0, 1000, 600'000'000, 1'200'000'000, 20'000'000'000});
    words.insert(words.end(), {"TOKEN", std::to_string(world_->now_us() + ahead_us)});
  }
  if (dice_.one_in(6)) words.insert(words.end(), {"NOTE", dice_.pick<std::string>({"", "why", "nightly"})});
  return words;
}

Words ServerGenerator::renew() {
  const std::string k = key();
  if (dice_.one_in(2)) return {"RENEW", k, holder_of(k)};
  return {"RENEW", k, holder_of(k), ttl()};
}

Words ServerGenerator::unlock() {
  const std::string k = key();
  return {"UNLOCK", k, holder_of(k)};
}

Words ServerGenerator::fence() {
  const std::string k = key();
  return {"FENCE", k, holder_of(k), std::to_string(world_->now_us() + dice_.between(0, 1'000'000))};
}

Words ServerGenerator::break_lock() {
  const uint64_t choice = dice_.below(4);
  if (choice == 0) return {"LOCKS", "BREAK", key()};
  if (choice == 1) return {"LOCKS", "REVOKE", key()};
  return {"LOCKS", "INFO", key()};
}

Words ServerGenerator::lease() {
  const std::string id = lease_id();
  const uint64_t choice = dice_.below(10);
  if (choice < 5) {
    Words words = {"LEASE", "GRANT", id, std::to_string(dice_.between(100, 200'000)), key(), owner()};
    if (dice_.one_in(2)) words.insert(words.end(), {"extra", owner()});
    return words;
  }
  if (choice < 6) return {"LEASE", "CONFIRM", id};
  if (choice < 7) return {"LEASE", "CANCEL", id};
  if (choice < 8) return {"LEASE", "INFO", id};
  return {"LEASE", "RENEW", id};
}

Words ServerGenerator::set() {
  Words words = {"SET", key(), dice_.one_in(2) ? owner() : value()};
  if (dice_.one_in(3)) words.emplace_back(dice_.one_in(2) ? "NX" : "XX");
  if (dice_.one_in(3)) {
    words.insert(words.end(), {"PX", std::to_string(dice_.between(1, 100'000))});
  } else if (dice_.one_in(6)) {
    words.emplace_back("KEEPTTL");
  }
  if (dice_.one_in(12)) return {"APPEND", key(), value()};
  if (dice_.one_in(12)) return {"SETRANGE", key(), std::to_string(dice_.below(3000)), value()};
  if (dice_.one_in(12)) return {"GETDEL", key()};
  return words;
}

Words ServerGenerator::hash() {
  const std::string k = dice_.one_in(2) ? "h" : key();
  const std::string field = "f" + std::to_string(dice_.below(12));
  const uint64_t choice = dice_.below(14);
  if (choice >= 8) return field_deadline(k, field);
  if (choice < 4) return {"HSET", k, field, dice_.one_in(20) ? std::string(100, 'x') : value()};
  if (choice < 5) return {"HDEL", k, field};
  if (choice < 6) return {"HINCRBY", k, "n", "1"};
  if (choice < 7) return {"HSETNX", k, field, value()};
  return {"HGETALL", k};
}

Words ServerGenerator::field_deadline(const std::string& k, const std::string& field) {
  const std::string ms = std::to_string(dice_.between(0, dice_.one_in(2) ? 1000 : 100'000));
  switch (dice_.below(8)) {
    case 0:
    case 1:
      return {"HPEXPIRE", k, ms, dice_.pick<std::string>({"NX", "XX", "GT", "LT"}), "FIELDS", "1", field};
    case 2:
      return {"HEXPIRE", k, std::to_string(dice_.below(100)), "FIELDS", "2", field, "n"};
    case 3:
      return {"HSETEX", k, "PX", ms, "FIELDS", "1", field, value()};
    case 4:
      return {"HPERSIST", k, "FIELDS", "1", field};
    case 5:
      return {"HGETEX", k, "PX", ms, "FIELDS", "1", field};
    case 6:
      return {"HGETDEL", k, "FIELDS", "1", field};
    default:
      return {"HPTTL", k, "FIELDS", "2", field, "n"};
  }
}

Words ServerGenerator::counter() {
  const std::string k = dice_.one_in(3) ? key() : "count";
  if (dice_.one_in(3)) return {"DECRBY", k, std::to_string(dice_.below(9))};
  return {dice_.one_in(4) ? "DECR" : "INCR", k};
}

Words ServerGenerator::expire() {
  const uint64_t choice = dice_.below(5);
  if (choice == 0) return {"PERSIST", key()};
  if (choice == 1) return {"EXPIRE", key(), std::to_string(dice_.between(0, 500))};
  return {"PEXPIRE", key(), ttl()};
}

Words ServerGenerator::move() {
  const uint64_t choice = dice_.below(6);
  if (choice < 2) return {"RENAME", key(), key()};
  if (choice < 3) return {"RENAMENX", key(), key()};
  if (choice < 4) return {"SWAPDB", "0", "1"};
  Words words = {"COPY", key(), key()};
  if (dice_.one_in(2)) words.emplace_back("REPLACE");
  return words;
}

Words ServerGenerator::flush() {
  if (!dice_.one_in(3)) return del();
  return {dice_.one_in(2) ? "FLUSHALL" : "FLUSHDB"};
}

Words ServerGenerator::script() {
  const std::string k = key();
  switch (dice_.below(4)) {
    case 0:
      return {"EVAL", "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 5000)", "1", k, owner()};
    case 1:
      return {
          "EVAL",
          "redis.call('INCR', 'count') redis.call('HSET', 'h', 's', 1) return redis.call('DEL', KEYS[1])",
          "1", k};
    case 2:
      return {"EVAL", "return redis.call('LOCK', KEYS[1], ARGV[1], 30000)", "1", k, owner()};
    default:
      return {"EVAL", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end",
              "1", k, holder_of(k)};
  }
}

Words ServerGenerator::del() { return {dice_.one_in(2) ? "DEL" : "UNLINK", key()}; }

Words ServerGenerator::look() {
  const uint64_t choice = dice_.below(6);
  if (choice == 0) return {"GET", key()};
  if (choice == 1) return {"PTTL", key()};
  if (choice == 2) return {"LOCKS", "OWNED", owner()};
  if (choice == 3) return {"INFO", "persistence"};
  if (choice == 4) return {"DBSIZE"};
  return {"LOCKS", "INFO", key()};
}

Words ServerGenerator::save() {
  if (dice_.one_in(5)) return {"SAVE"};
  return {dice_.one_in(3) ? "BGREWRITEAOF" : "BGSAVE"};
}

// Not during a start: a paused request would run before the oracle sees what was restored.
Words ServerGenerator::pause() {
  if (!world_->is_loaded()) return look();
  return {"CLIENT", "PAUSE", std::to_string(dice_.between(1, 500)), dice_.one_in(2) ? "WRITE" : "ALL"};
}

Words ServerGenerator::transaction() { return {"MULTI"}; }

}  // namespace holdfast::simulation
