// Requests and their replies over one connection, which opens when there is a request to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/backoff.h"
#include "client/transport/connection.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// The most unanswered requests of one connection; beyond it a request is lost at once. A request that timed
// out counts until its answer comes or the connection is closed.
inline constexpr size_t kMaxUnanswered = 100'000;

class Pipeline final : public ConnectionUser {
 public:
  Pipeline(Loop& loop, const Address& address, size_t most_unanswered = kMaxUnanswered);

  // Sends a request as Link::ask() does.
  void ask(const std::vector<std::string>& argv, DurationMs timeout, Link::Answered done);
  // Returns the number of the present connection, counted from 1; 0: none yet. Requests go over the same
  // connection while the number stays the same.
  uint64_t connection() const { return connections_; }

 private:
  // Requests are in the order of sending. A request that timed out stays without `done`, because its reply
  // may still come.
  struct Request {
    std::vector<std::string> argv;  // empty after sending
    DurationMs timeout;
    TimeMs deadline;
    Link::Answered done;
  };
  struct Loss {
    Link::Answered done;
    std::string why;
  };

  void opened() override;
  void answered(Value value) override;
  void broke(std::string why) override;

  void on_time();
  void expire(TimeMs now);
  void arm();
  bool is_silent(TimeMs now) const;
  void fail(const std::string& why);
  void notify_losses();

  Loop& loop_;
  const Address& address_;
  const size_t most_unanswered_;
  std::deque<Request> requests_;
  std::vector<Loss> losses_;  // losses that the timer reports at once
  std::unique_ptr<Connection> connection_;
  uint64_t connections_ = 0;
  Backoff backoff_;
  TimeMs heard_{};             // the last sign of life while requests were unanswered
  TimeMs alarm_ = kNever;      // the time set for timer_
  bool has_answered_ = false;  // the present connection has answered a request
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

}  // namespace holdfast::client
