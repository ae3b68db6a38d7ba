// The servers, asked directly and all at once, for the verbs that are no client of a lock: each shows or
// changes what each server has.
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
  int64_t clock_us = 0;  // this machine's, in the middle between question and answer

  bool is(client::Value::Kind kind) const { return value.kind == kind; }
  // Neither lost nor an error.
  bool good() const { return !is(client::Value::Kind::kLost) && !is(client::Value::Kind::kError); }
  // Why it is not good.
  std::string why() const;
};

class Servers {
 public:
  // Throws std::invalid_argument as client::open_place does.
  explicit Servers(const std::string& where);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  const client::Place& place() const { return place_; }
  // By numbers, in the order in which --servers has them.
  std::vector<size_t> all() const;
  std::vector<size_t> of_key(const std::string& key) const;
  std::string name(size_t server) const { return place_.servers[server].text(); }

  // Asks all at once, and waits until each has answered or its time is over: an answer each, in their
  // order.
  std::vector<Answer> ask(const std::vector<size_t>& servers, const std::vector<std::string>& argv);
  // Calls `told` on a thread of its own for each message of the channel, until the end of this object; with
  // "" whenever the subscription becomes active (see client::Link).
  using Told = std::function<void(size_t server, const std::string& message)>;
  // `lost` is called on that thread whenever the connection of such a watch broke or could not be made.
  using Lost = std::function<void(size_t server, const std::string& why)>;
  void watch(const std::vector<size_t>& servers, const std::string& channel, const Told& told,
             const Lost& lost);
  // The same for all channels that match a pattern.
  using ToldOf = std::function<void(size_t server, const std::string& channel, const std::string& message)>;
  void watch_pattern(const std::vector<size_t>& servers, const std::string& pattern, const ToldOf& told,
                     const Lost& lost);

 private:
  const client::Place place_;
  const client::Ring ring_;
  std::vector<std::unique_ptr<client::Link>> links_;  // the loop's thread
  client::Loop loop_;                                 // the last, so that its thread ends first
};

}  // namespace holdfast
