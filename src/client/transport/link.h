// A link to a server that implements LOCK, FENCE and so on itself, over connections of any kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast::client {

// Connects when there is a request to send. After a failure the link pauses, for 10 ms at first and for up
// to 1 s after consecutive failures; during the pause requests are lost at once. The link closes a
// connection whose requests had no answer for 5 s, and any connection whose peer machine vanished (TCP
// keepalive). One connection carries all requests, and one all watches. Each wait has its own. The one of
// the watches opens with the first watch, reopens after a failure, and closes with the last watch.
class ServerLink final : public Link {
 public:
  ServerLink(Loop& loop, Address address);
  ~ServerLink() override;

  void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) override;
  Wait wait(const std::vector<std::string>& argv, const Done& done) override;
  void end(Wait wait) override;
  Watch watch(const std::string& channel, std::function<void(const std::string&)> on_message) override;
  Watch watch_pattern(const std::string& pattern, OnPatternMessage on_message) override;
  void unwatch(Watch watch) override;
  void on_watch_loss(std::function<void(const std::string& why)> callback) override;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace holdfast::client
