// Timeouts: each request has its own deadline, and the connection has one while replies are outstanding.
// One timer serves all of them. It may fire with no work to do, because an answer does not move it.
#include "client/transport/pipeline.h"

#include <algorithm>
#include <utility>

namespace holdfast::client {

Pipeline::Pipeline(Loop& loop, const Address& address, size_t most_unanswered)
    : loop_(loop),
      address_(address),
      most_unanswered_(most_unanswered),
      timer_(loop, [this] { on_time(); }) {}

void Pipeline::ask(const std::vector<std::string>& argv, DurationMs timeout, Link::Answered done) {
  const TimeMs now = Loop::now();
  if (!connection_ && !is_due(backoff_.until(), now)) {
    losses_.push_back({std::move(done), backoff_.why()});
    return arm();
  }
  if (requests_.size() >= most_unanswered_) {
    const std::string number = std::to_string(most_unanswered_);
    losses_.push_back({std::move(done), number + " requests have no answer yet; this one was not sent"});
    return arm();
  }
  if (requests_.empty()) heard_ = now;
  requests_.push_back({{}, timeout, now + timeout, std::move(done)});
  if (!connection_) {
    has_answered_ = false;
    ++connections_;
    connection_ = open_connection(loop_, address_, *this);
  }
  if (connection_->is_open()) {
    connection_->send(argv);
  } else {
    requests_.back().argv = argv;
  }
  arm();
}

void Pipeline::opened() {
  heard_ = Loop::now();
  for (Request& request : requests_) connection_->send(std::exchange(request.argv, {}));
  arm();
}

void Pipeline::answered(Value value) {
  heard_ = Loop::now();
  if (requests_.empty()) return broke("a reply without a request");
  has_answered_ = true;
  backoff_.succeed();
  const Link::Answered done = std::move(requests_.front().done);
  requests_.pop_front();
  if (done) done(value);
}

// A server that closes an idle connection has not failed: no loss and no pause follow.
void Pipeline::broke(std::string why) {
  if (has_answered_ && requests_.empty()) {
    connection_.reset();
  } else {
    fail(why);
  }
  notify_losses();
}

void Pipeline::fail(const std::string& why) {
  connection_.reset();
  backoff_.fail(why, Loop::now());
  for (Request& request : requests_) {
    if (request.done) losses_.push_back({std::move(request.done), why});
  }
  requests_.clear();
}

// Reports the losses. A callback may destroy this object.
void Pipeline::notify_losses() {
  const std::weak_ptr<const bool> life = life_;
  for (const Loss& loss : std::exchange(losses_, {})) {
    loss.done({Value::Kind::kLost, 0, loss.why, {}});
    if (life.expired()) return;
  }
}

void Pipeline::on_time() {
  alarm_ = kNever;
  const TimeMs now = Loop::now();
  expire(now);
  if (is_silent(now)) {
    fail("no answer in " + std::to_string(kSilence.count) + " ms");
    if (address_.on_connection) address_.on_connection(false);
  }
  arm();
  notify_losses();
}

void Pipeline::expire(TimeMs now) {
  const bool open = connection_ && connection_->is_open();
  for (Request& request : requests_) {
    if (!request.done || !is_due(request.deadline, now)) continue;
    const std::string why =
        (open ? "no answer in " : "no connection in ") + std::to_string(request.timeout.count) + " ms";
    losses_.push_back({std::exchange(request.done, nullptr), why});
  }
}

// Whether the open connection has been silent for too long. Opening has a limit of its own.
bool Pipeline::is_silent(TimeMs now) const {
  return connection_ && connection_->is_open() && !requests_.empty() && is_due(heard_ + kSilence, now);
}

// Sets the timer to the next deadline. O(1) while an alarm is set; otherwise O(n) for n requests under way.
void Pipeline::arm() {
  TimeMs at = losses_.empty() ? kNever : Loop::now();
  if (!requests_.empty() && connection_ && connection_->is_open()) at = std::min(at, heard_ + kSilence);
  if (alarm_ == kNever) {
    for (const Request& request : requests_) {
      if (request.done) at = std::min(at, request.deadline);
    }
  } else if (!requests_.empty()) {
    at = std::min(at, requests_.back().deadline);
  }
  if (at >= alarm_) return;
  alarm_ = at;
  timer_.set(at);
}

}  // namespace holdfast::client
