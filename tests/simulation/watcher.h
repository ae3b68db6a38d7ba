// Properties that must hold independently of the model: mutual exclusion by capacity, FIFO order, growing
// tokens, one reply per request. It knows only the requests, the output, and LOCKS INFO.
#pragma once

#include <cstdint>
#include <map>
#include <set>
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
  void received(Serial client, std::string_view reply) {
    if (!reply.starts_with(">")) --outstanding_[client];
  }
  // Each request has its one reply, except the request for which a connection waits.
  std::string check_replies(Serial client, bool blocked) const;

  // Compares LOCKS INFO (RESP2) of every key after a step with the same after the step before.
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
  static std::string check_order(const Seen& before, const Seen& now, const std::set<std::string>& again);
  static std::string check_overtaking(const Step& step, const Seen& before, const Seen& now,
                                      const std::set<std::string>& again);
  std::set<std::string> may_return(const KeyId& id, const Seen& before, const Seen& now, int64_t now_ms);

  std::map<Serial, int> outstanding_;
  std::map<KeyId, Seen> seen_;
  std::map<KeyId, uint64_t> largest_token_;
  std::map<KeyId, std::map<std::string, int64_t>> left_ms_;  // by owner: when a wait of it ended
};

}  // namespace holdfast::simulation
