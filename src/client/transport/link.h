// A server that knows LOCK, FENCE and so on itself, over connections of whatever kind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast::client {

// Connects when there is something to send. After a failure there is a pause, which grows from 10 ms to 1 s
// while failures follow one another; meanwhile requests are lost at once. A connection on which requests
// have had no answer for 5 s is closed, and so are all others where the peer's machine has vanished (TCP
// keepalive). One connection carries all requests, one each wait, and one all watches: it is opened with
// the first, opened anew where it breaks, and closed with the last.
class ServerLink final : public Link {
 public:
  ServerLink(Loop& loop, Address address);
  ~ServerLink() override;

  void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) override;
  Wait wait(const std::vector<std::string>& argv, const Done& done) override;
  void end(Wait wait) override;
  Watch watch(const std::string& channel, std::function<void(const std::string&)> told) override;
  Watch watch_pattern(const std::string& pattern, ToldOf told) override;
  void unwatch(Watch watch) override;
  void on_watch_loss(std::function<void(const std::string& why)> told) override;

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace holdfast::client
