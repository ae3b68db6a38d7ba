// Requests and their replies over one connection, which is opened when there is something to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/backoff.h"
#include "client/transport/connection.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// Of one connection; beyond it a request is lost at once. What has timed out counts until it is answered,
// or the connection is given up.
inline constexpr size_t kMaxUnanswered = 100'000;

class Pipeline final : public ConnectionUser {
 public:
  Pipeline(Loop& loop, const Address& address);

  // As Link::ask().
  void ask(const std::vector<std::string>& argv, DurationMs timeout, Link::Answered done);
  // Which connection it is, counted from 1; what is asked goes over this one while the number stays.
  uint64_t connection() const { return connections_; }

 private:
  // In the order of sending. One whose time is over stays, as its reply may still come, without `done`.
  struct Request {
    std::vector<std::string> argv;  // until it is sent
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
  void tell_losses();

  Loop& loop_;
  const Address& address_;
  std::deque<Request> requests_;
  std::vector<Loss> losses_;  // to be told at the next moment
  std::unique_ptr<Connection> connection_;
  uint64_t connections_ = 0;
  Backoff backoff_;
  TimeMs heard_{};             // the last sign of life while something was asked
  TimeMs alarm_ = kNever;      // of timer_
  bool has_answered_ = false;  // this connection
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // ends with this
};

}  // namespace holdfast::client
