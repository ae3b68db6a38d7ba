// A Redlock driven by a test: its sends as short lines, replies by server, and a clock that the test sets.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/base/server_error.h"

namespace holdfast::client {

inline RedlockConfig three_servers(std::optional<DurationMs> wait = std::nullopt) {
  RedlockConfig config;
  config.servers = 3;
  config.quorum = 2;
  config.ttl = {10000};  // valid for 10000 - 100 - 2
  config.wait = wait;
  return config;
}

inline RedlockConfig one_server(std::optional<DurationMs> wait = std::nullopt) {
  RedlockConfig config = three_servers(wait);
  config.servers = config.quorum = 1;
  return config;
}

class Script {
 public:
  explicit Script(const RedlockConfig& config, const std::vector<std::string>& mode = {})
      : lock(config, "k", mode, [this](uint64_t n) { return dice && n != 16 ? dice(n) : draw() % n; }) {
    lock.acquire(TimeMs{now}, clock_us);
    look();
  }

  // Returns the sends since the last call, as "0:LOCK k A 10000 TOKEN 500". Letters name the owners.
  std::string sent() {
    look();
    return std::exchange(sent_, "");
  }
  // Returns the UNLOCKs since the last call, as "0A 1A".
  std::string unlocked() {
    std::string out;
    look();
    for (const auto& [server, owner] : std::exchange(unlocked_, {})) {
      out += (out.empty() ? "" : " ") + std::to_string(server) + owner;
    }
    return out;
  }
  // reply() answers the last request to the server, except UNLOCKs whose reply the lock ignores.
  // reply_to() answers the request with this id.
  void reply(size_t server, Reply reply) { reply_to(asked_.at(server), std::move(reply)); }
  void reply_to(uint64_t id, Reply reply) {
    lock.on_reply(id, reply, TimeMs{now}, clock_us);
    look();
  }
  void grant(size_t server, int64_t token) { reply(server, {Reply::Kind::kGrant, token, ""}); }
  void null(size_t server) { reply(server, {Reply::Kind::kNull, 0, ""}); }
  void number(size_t server, int64_t n) { reply(server, {Reply::Kind::kInteger, n, ""}); }
  void text(size_t server, const char* words) { reply(server, {Reply::Kind::kText, 0, words}); }
  void error(size_t server, const char* text) {
    reply(server, {Reply::Kind::kError, 0, text, server_error_of(std::string_view(text))});
  }
  void lost(size_t server) { reply(server, {Reply::Kind::kLost, 0, "gone"}); }
  // Sets the time, and runs the due work.
  void at(int64_t ms) {
    now = ms;
    lock.on_time(TimeMs{now}, clock_us);
    look();
  }
  // Acquires with grants of servers 0 and 1; no reply is outstanding after it.
  void take() {
    grant(0, 500);
    grant(1, 500);
    null(2);
    sent();
    REQUIRE(held());
  }
  bool held() const { return lock.state() == Redlock::State::kHeld; }
  bool over() const { return lock.state() == Redlock::State::kOver; }
  bool queueing() const { return lock.state() == Redlock::State::kQueueing; }
  bool pausing() const { return lock.state() == Redlock::State::kPausing; }
  Outcome outcome() const { return lock.result().outcome; }
  uint64_t asked(size_t server) const { return asked_.at(server); }

  int64_t now = 1000;
  uint64_t clock_us = 500;
  std::function<uint64_t(uint64_t)> dice;  // for pauses; null: draw(). Owners (n = 16) use draw()
  std::vector<uint64_t> ended;

 private:
  uint64_t drawn_ = 0;  // before `lock`, whose constructor draws
  std::map<std::string, std::string> names_;
  std::map<size_t, uint64_t> asked_;
  std::vector<std::pair<size_t, std::string>> unlocked_;
  std::string sent_;

  // Returns any number; the numbers of owners must differ.
  uint64_t draw() { return (drawn_ = drawn_ * 6364136223846793005 + 1442695040888963407) >> 33; }

  void look() {
    lock.check_invariants();
    for (const Send& send : lock.take_sends()) {
      auto argv = send.argv;
      std::string name;
      if (argv.size() > 2) {
        name = names_.try_emplace(argv[2], 1, static_cast<char>('A' + names_.size())).first->second;
        argv[2] = name;
      }
      sent_ += sent_.empty() ? "" : "|";
      sent_ += std::to_string(send.server) + (send.waits ? "w:" : ":");
      for (const std::string& word : argv) sent_ += (&word == argv.data() ? "" : " ") + word;
      if (argv[0] == "UNLOCK") unlocked_.emplace_back(send.server, name);
      if (argv[0] != "UNLOCK" || lock.state() == Redlock::State::kReleasing) asked_[send.server] = send.id;
    }
    for (const uint64_t id : lock.take_ends()) ended.push_back(id);
  }

 public:
  Redlock lock;
};

}  // namespace holdfast::client
