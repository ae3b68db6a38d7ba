// Subscriptions over one connection, which lives while there are any.
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

// A subscription that is silent for so long is asked whether it lives,
inline constexpr DurationMs kQuiet{5000};
// and made anew where no answer comes in so long.
inline constexpr DurationMs kNoAnswer{5000};

class Watcher final : public ConnectionUser {
 public:
  using Told = std::function<void(const std::string&)>;

  // `where`: to connect to next; asked for each connection.
  using Where = std::function<Address()>;

  Watcher(Loop& loop, Where where, DurationMs quiet = kQuiet, DurationMs no_answer = kNoAnswer);
  Watcher(Loop& loop, const Address& address, DurationMs quiet = kQuiet, DurationMs no_answer = kNoAnswer)
      : Watcher(loop, Where([address] { return address; }), quiet, no_answer) {}

  // As Link's.
  Link::Watch watch(const std::string& channel, Told told);
  Link::Watch watch_pattern(const std::string& pattern, Link::ToldOf told);
  void unwatch(Link::Watch watch);
  void on_loss(std::function<void(const std::string& why)> told) { lost_ = std::move(told); }

 private:
  // What is subscribed to: a channel, or a pattern of channels.
  struct Topic {
    bool is_pattern = false;
    std::string name;
    auto operator<=>(const Topic&) const = default;
  };
  struct Subscriber {
    std::shared_ptr<const Link::ToldOf> told;  // shared: it may end itself while it is called
    bool active = false;
  };
  // It goes when there are neither subscribers nor confirmations to come.
  struct Channel {
    std::map<Link::Watch, Subscriber> subscribers;
    int unconfirmed = 0;  // SUBSCRIBEs that were sent
  };

  void opened() override;
  void answered(Value value) override;
  void broke(std::string why) override;

  void on_time();
  Link::Watch add(Topic topic, Link::ToldOf told);
  void subscribe(const Topic& topic, Channel& channel);
  void confirm(const Topic& topic);
  void tell(const Topic& topic, const std::vector<Link::Watch>& whom, const std::string& channel,
            const std::string& message);

  Loop& loop_;
  const Where where_;
  std::map<Topic, Channel> channels_;
  std::map<Link::Watch, Topic> names_;  // the topic of each
  Link::Watch last_ = 0;
  std::function<void(const std::string& why)> lost_;
  std::unique_ptr<Connection> connection_;
  Backoff backoff_;
  const DurationMs quiet_;
  const DurationMs no_answer_;
  bool asked_ = false;  // and nothing was heard since
  LoopTimer timer_;     // to connect; of an open connection, to ask or to give it up
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // ends with this
};

}  // namespace holdfast::client
