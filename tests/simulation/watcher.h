// Properties that must hold whatever a model says: mutual exclusion by capacity, first come first served,
// tokens that grow, one reply a request. Knows only what was asked, what was heard, and what LOCKS INFO
// shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model.h"
#include "step.h"

namespace holdfast::simulation {

class Watcher {
 public:
  void open(Serial client) { outstanding_[client] = 0; }
  void dropped(Serial client) { outstanding_.erase(client); }
  void asked(Serial client, const Args&) { ++outstanding_[client]; }
  // One reply or push.
  void heard(Serial client, std::string_view reply) {
    if (!reply.starts_with(">")) --outstanding_[client];
  }
  // Each request has had its one reply, but for the one a connection waits for.
  std::string check_replies(Serial client, bool blocked) const;

  // Compares what LOCKS INFO (RESP2) says of every key after a step with what it said after the step
  // before.
  std::string judge(const Step& step, const std::map<KeyId, std::string>& infos, int64_t now_ms);

 private:
  struct Holder {
    std::string owner;
    uint64_t token = 0;
    int64_t limit = 0;  // 0: unlimited
  };
  struct Waiter {
    std::string owner;
    int64_t limit = 0;
    int64_t since_ms = 0;
    int64_t client = 0;
    bool operator==(const Waiter&) const = default;
  };
  struct Seen {
    std::vector<Holder> holders;
    std::vector<Waiter> waiters;
  };

  static Seen parse(std::string_view info, int64_t now_ms);
  static std::string check_capacity(const Seen& now);
  std::string check_tokens(const KeyId& id, const Seen& before, const Seen& now);
  static std::string check_order(const Seen& before, const Seen& now);
  static std::string check_overtaking(const Step& step, const Seen& before, const Seen& now);

  std::map<Serial, int> outstanding_;
  std::map<KeyId, Seen> seen_;
  std::map<KeyId, uint64_t> largest_token_;
};

}  // namespace holdfast::simulation
