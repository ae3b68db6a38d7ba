// A link to a Redis or a Redis Cluster, where the scripts of redis-scripts/ implement locks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast::client {

class RedisCore;

// Accepts Holdfast's requests and gives Holdfast's replies. It answers requests that Redis cannot execute
// with an error that says so.
//
// A wait consists of attempts: one for each event of the key, and one when a hold ends. Of the waits of
// this link for the same key and mode, only the first makes these attempts. The grant of a wait is not a
// SESSION hold: end() releases it, unless a LOCK of the same owner has taken it over. If the process
// vanishes, the grant expires with its TTL.
//
// After its destruction the core of the link stays alive until its grants on Redis are released, for at
// most a few seconds.
class RedisLink final : public Link {
 public:
  RedisLink(Loop& loop, const Address& address);
  ~RedisLink() override;

  void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) override;
  Wait wait(const std::vector<std::string>& argv, const Done& done) override;
  void end(Wait wait) override;
  Watch watch(const std::string& channel, std::function<void(const std::string&)> on_message) override;
  Watch watch_pattern(const std::string& pattern, OnPatternMessage on_message) override;
  void unwatch(Watch watch) override;
  void on_watch_loss(std::function<void(const std::string& why)> callback) override;

 private:
  std::shared_ptr<RedisCore> core_;
};

}  // namespace holdfast::client
