// A link whose requests a ClientMeter counts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast {

class ClientMeter;

class MeteredLink final : public client::Link {
 public:
  // `server` is the meter's index of the link's server.
  MeteredLink(std::unique_ptr<client::Link> link, std::shared_ptr<ClientMeter> meter, size_t server);

  void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) override;
  Wait wait(const std::vector<std::string>& argv, const Done& done) override;
  void end(Wait wait) override { link_->end(wait); }
  Watch watch(const std::string& channel, std::function<void(const std::string&)> on_message) override;
  Watch watch_pattern(const std::string& pattern, OnPatternMessage on_message) override;
  void unwatch(Watch watch) override { link_->unwatch(watch); }
  void on_watch_loss(std::function<void(const std::string& why)> callback) override;

 private:
  const std::shared_ptr<ClientMeter> meter_;
  const size_t server_;
  const std::unique_ptr<client::Link> link_;  // its requests refer to the meter
};

}  // namespace holdfast
