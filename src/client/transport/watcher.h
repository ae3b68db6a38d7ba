// Subscriptions over one connection, which is open while there are subscriptions.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "client/transport/backoff.h"
#include "client/transport/connection.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// After so long without a message, the watcher tests the connection.
inline constexpr DurationMs kQuiet{5000};
// If the test has no answer for so long, the watcher reconnects.
inline constexpr DurationMs kNoAnswer{5000};

class Watcher final : public ConnectionUser {
 public:
  using OnMessage = std::function<void(const std::string&)>;

  // Returns the address to connect to; called for each connection.
  using Where = std::function<Address()>;

  Watcher(Loop& loop, Where where, DurationMs quiet = kQuiet, DurationMs no_answer = kNoAnswer);
  Watcher(Loop& loop, const Address& address, DurationMs quiet = kQuiet, DurationMs no_answer = kNoAnswer)
      : Watcher(loop, Where([address] { return address; }), quiet, no_answer) {}

  // The functions of Link.
  Link::Watch watch(const std::string& channel, OnMessage on_message);
  Link::Watch watch_pattern(const std::string& pattern, Link::OnPatternMessage on_message);
  void unwatch(Link::Watch watch);
  void on_loss(std::function<void(const std::string& why)> callback) { lost_ = std::move(callback); }

 private:
  // The subject of a subscription: a channel, or a pattern of channels.
  struct Topic {
    bool is_pattern = false;
    std::string name;
    auto operator<=>(const Topic&) const = default;
  };
  struct Subscriber {
    // Shared, because it may remove itself while it runs.
    std::shared_ptr<const Link::OnPatternMessage> on_message;
    bool active = false;
  };
  // Removed when it has no subscribers and no outstanding confirmations.
  struct Channel {
    std::map<Link::Watch, Subscriber> subscribers;
    int unconfirmed = 0;  // SUBSCRIBEs sent and not confirmed
  };

  void opened() override;
  void answered(Value value) override;
  void broke(std::string why) override;

  void on_time();
  Link::Watch add(Topic topic, Link::OnPatternMessage on_message);
  void subscribe(const Topic& topic, Channel& channel);
  void confirm(const Topic& topic);
  void deliver(const Topic& topic, const std::vector<Link::Watch>& receivers, const std::string& channel,
               const std::string& message);

  Loop& loop_;
  const Where where_;
  std::map<Topic, Channel> channels_;
  std::map<Link::Watch, Topic> names_;  // the topic of each watch
  Link::Watch last_ = 0;
  std::function<void(const std::string& why)> lost_;
  std::unique_ptr<Connection> connection_;
  Backoff backoff_;
  const DurationMs quiet_;
  const DurationMs no_answer_;
  bool asked_ = false;  // a SUBSCRIBE was sent, and no message came since
  LoopTimer timer_;     // to connect; for an open connection, to test or to close it
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

}  // namespace holdfast::client
