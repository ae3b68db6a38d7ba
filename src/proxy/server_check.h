// Whether the servers are what the proxy needs: each one another Holdfast server, and none of them a proxy.
// Asks them again and again, and says in the log which of them answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/transport/transport.h"
#include "proxy/quorum.h"

namespace holdfast::proxy {

class ServerCheck {
 public:
  // `known`: called once, when the first round is over.
  ServerCheck(Quorum& quorum, std::function<void(const std::string&)> log, std::function<void()> known);
  ServerCheck(const ServerCheck&) = delete;
  ServerCheck& operator=(const ServerCheck&) = delete;

  // Whether each server has answered once, or has been silent for the timeout.
  bool is_known() const { return known_ == nullptr; }
  // The error for all requests on keys; empty if there is no reason.
  const std::string& refusal() const { return refusal_; }

 private:
  void ask();
  void judge(const Quorum::Answers& answers);
  void record(size_t server, const client::Value& answer);

  Quorum& quorum_;
  const std::function<void(const std::string&)> log_;
  std::function<void()> known_;
  std::vector<std::optional<bool>> answers_;  // whether a server answered in the last round
  std::string refusal_;
  client::LoopTimer timer_;
};

// The error if these answers to LOCKS HEARTBEAT show servers that no proxy can use; else empty.
std::string refuse_servers(const std::vector<std::string>& names, const Quorum::Answers& answers);

}  // namespace holdfast::proxy
