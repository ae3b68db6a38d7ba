// Requests and their replies over one connection, which opens when there is a request to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
  Pipeline(Loop& loop, const Address& address);

  // Sends a request as Link::ask() does.
  void ask(const std::vector<std::string>& argv, DurationMs timeout, Link::Answered done);
  // The same for a request whose reply may come late: it has no timeout, and its silence breaks no
  // connection.
  void ask_patiently(const std::vector<std::string>& argv, Link::Answered done);
  // Values that `is_push` names are no replies. Call these two before the first request. `on_break` follows
  // each end of a connection, after the losses of the requests without a reply.
  void on_push(bool (*is_push)(const Value&), std::function<void(const Value&)> take) {
    is_push_ = is_push;
    take_push_ = std::move(take);
  }
  void on_break(std::function<void(const std::string&)> take) { take_break_ = std::move(take); }
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
    bool patient = false;
  };
  struct Loss {
    Link::Answered done;
    std::string why;
  };

  void opened() override;
  void answered(Value value) override;
  void broke(std::string why) override;

  void add(const std::vector<std::string>& argv, Request request);
  void on_time();
  void expire(TimeMs now);
  void arm();
  bool is_silent(TimeMs now) const;
  void fail(const std::string& why);
  void notify_losses();

  Loop& loop_;
  const Address& address_;
  std::deque<Request> requests_;
  size_t patient_ = 0;  // requests of ask_patiently() among them
  bool (*is_push_)(const Value&) = nullptr;
  std::function<void(const Value&)> take_push_;
  std::function<void(const std::string&)> take_break_;
  std::optional<std::string> broken_;  // a break to report behind the losses
  std::vector<Loss> losses_;           // losses that the timer reports at once
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
