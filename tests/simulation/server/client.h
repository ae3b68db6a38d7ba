// A client of the simulated server: sends requests, and learns from replies and pushes which locks it got.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop.h"

namespace holdfast::simulation {

// A lock that a client was told that it has.
struct Grant {
  std::string key;
  std::string owner;
  uint64_t token = 0;
  auto operator<=>(const Grant&) const = default;
};

class Client {
 public:
  explicit Client(std::shared_ptr<Socket> socket) : socket_(std::move(socket)) {}

  Socket& socket() { return *socket_; }
  bool is_open() const { return !socket_->server_closed && !socket_->client_ended && !socket_->reset; }
  void send(const std::vector<std::string>& words);
  // Sends the first bytes of a request. The rest follows before the next request.
  void send_part(const std::vector<std::string>& words, size_t bytes);
  // Sends bytes as they are. From now on no reply is assigned to a request.
  void send_bytes(const std::string& bytes);
  // Reads what has arrived, and calls `got` for each grant.
  void read(const std::function<void(const Grant&)>& got);
  // The last reply; empty before the first.
  const std::string& last_reply() const { return last_reply_; }
  size_t unanswered() const { return requests_.size(); }

 private:
  std::shared_ptr<Socket> socket_;
  std::deque<std::vector<std::string>> requests_;  // not answered yet
  std::string last_reply_;
  std::string rest_;      // of a request, not sent yet
  bool in_order_ = true;  // one reply for each request, in their order
};

}  // namespace holdfast::simulation
