// A Redis, or a Redis Cluster, whose locks are made by the scripts of redis-scripts/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast::client {

class RedisCore;

// Takes Holdfast's requests and gives Holdfast's replies; what Redis cannot do is answered with an error
// that says so. A wait is made of attempts, one for each event of the key and one when a hold ends, of the
// first of those who wait here for the same; its
// grant is no SESSION hold: it is released by end(), unless a LOCK of the same owner has taken it over, and
// what a process leaves that vanishes, ends with its ttl.
//
// Lives on after its end until what it has asked for there is released, at most some seconds.
class RedisLink final : public Link {
 public:
  RedisLink(Loop& loop, const Address& address);
  ~RedisLink() override;

  void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) override;
  Wait wait(const std::vector<std::string>& argv, const Done& done) override;
  void end(Wait wait) override;
  Watch watch(const std::string& channel, std::function<void(const std::string&)> told) override;
  Watch watch_pattern(const std::string& pattern, ToldOf told) override;
  void unwatch(Watch watch) override;
  void on_watch_loss(std::function<void(const std::string& why)> told) override;

 private:
  std::shared_ptr<RedisCore> core_;
};

}  // namespace holdfast::client
