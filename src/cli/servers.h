// Sends requests directly to all servers in parallel. For the verbs that do not hold a lock themselves:
// they show or change the state of each server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/base/address.h"
#include "client/base/ring.h"
#include "client/base/value.h"
#include "client/transport/transport.h"

namespace holdfast {

struct Answer {
  std::string server;  // host:port
  client::Value value;
  int64_t round_trip_us = 0;
  int64_t clock_us = 0;  // this machine's, halfway between request and reply

  bool is(client::Value::Kind kind) const { return value.kind == kind; }
  // Whether the server replied, and not with an error.
  bool good() const { return !is(client::Value::Kind::kLost) && !is(client::Value::Kind::kError); }
  // Returns the reason if the answer is not good: the error and advice.
  std::string why() const;
};

class Servers {
 public:
  // `where` is an address as --servers takes it. Throws std::invalid_argument as client::client_config_of()
  // does.
  explicit Servers(const std::string& where);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const client::ClientConfig& config() const { return config_; }
  // Servers have indices, in the order of --servers. Both return them in ascending order.
  std::vector<size_t> all() const;
  std::vector<size_t> of_key(const std::string& key) const;
  std::string name(size_t server) const { return config_.servers[server].text(); }

  // Sends `argv` to all in parallel, and waits until each server replied or timed out. Returns one answer
  // for each server, in the order of `servers`.
  std::vector<Answer> ask(const std::vector<size_t>& servers, const std::vector<std::string>& argv);
  // Sends the requests to one server in their order, and returns at once. The loop's thread calls `done`
  // with one answer for each request. After this object is destroyed, `done` is not called.
  using Answered = std::function<void(const std::vector<Answer>& answers)>;
  void start(size_t server, const std::vector<std::vector<std::string>>& requests, const Answered& done);
  // Calls `on_message` on the loop's thread for each message of the channel, until this object is
  // destroyed. The message is "" whenever the subscription becomes active (see client::Link).
  using OnMessage = std::function<void(size_t server, const std::string& message)>;
  // The same thread calls `lost` whenever the connection of such a watch broke or could not be made.
  using Lost = std::function<void(size_t server, const std::string& why)>;
  void watch(const std::vector<size_t>& servers, const std::string& channel, const OnMessage& on_message,
             const Lost& lost);
  // As watch(), for all channels that match a pattern.
  using OnPatternMessage =
      std::function<void(size_t server, const std::string& channel, const std::string& message)>;
  void watch_pattern(const std::vector<size_t>& servers, const std::string& pattern,
                     const OnPatternMessage& on_message, const Lost& lost);

 private:
  const client::ClientConfig config_;
  const client::Ring ring_;
  std::vector<std::unique_ptr<client::Link>> links_;  // for the loop's thread only
  client::Loop loop_;                                 // the last member, so that its thread ends first
};

}  // namespace holdfast
