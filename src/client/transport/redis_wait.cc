// Waiting on Redis. There is no polling: each attempt has a cause. The causes are an event of the key, the
// end of a hold, the beginning of the subscription, and the end of the wait that was first in the queue.
// Also the absence of the key, for which the first wait of a queue looks once a second.
#include <algorithm>
#include <utility>

#include "client/base/validity.h"
#include "client/transport/connection.h"
#include "client/transport/redis_link_core.h"

namespace holdfast::client {

RedisWait::RedisWait(RedisCore& core, WaitingLock lock, Link::Done done)
    : core_(core),
      lock_(std::move(lock)),
      queue_key_(lock_.key, lock_.mode),
      done_(std::move(done)),
      until_(lock_.wait.count == 0 ? kNever : saturating_add(Loop::now(), lock_.wait)),
      due_at_(Loop::now() + kSilence),
      timer_(core.loop(), [this] { on_time(); }) {
  core_.join_queue(*this);
  watch_ = core_.watcher().watch("__lock__:" + lock_.key,
                                 [this](const std::string& message) { on_event(message); });
  timer_.set(std::min(until_, due_at_));
}

// If an attempt is under way, its callback releases a grant.
RedisWait::~RedisWait() {
  if (watch_ != 0) core_.watcher().unwatch(watch_);
  if (done_ != nullptr) core_.leave_queue(*this, false);
  core_.forget_granted(*this);
  if (granted_) core_.unlock(lock_.key, lock_.owner);
}

// Handles an event. The first one says that the subscription is active: no event is missed from then on.
// Each wait makes an attempt then, because its owner may already hold the lock. A "granted" event admits no
// exclusive lock, and an earlier end of the hold comes as an event of its own. For the other modes, a
// holder may have made room.
void RedisWait::on_event(const std::string& message) {
  listening_ = true;
  if (message.starts_with("granted ") && lock_.mode.empty()) return;
  if (trying_) {
    again_ = true;
  } else if (!tried_ || core_.is_first(*this)) {
    try_once();
  }
}

// Makes an attempt, because this wait ignored the events before it became the first.
void RedisWait::lead() {
  if (trying_) {
    again_ = true;
  } else if (listening_) {
    try_once();
  }
}

void RedisWait::try_once() {
  tried_ = trying_ = true;
  again_ = false;
  due_at_ = kNever;
  timer_.set(kNever);
  core_.attempt(lock_.attempt, [this, life = std::weak_ptr(life_), core = &core_, key = lock_.key,
                                owner = lock_.owner](const Value& value) {
    const bool alive = !life.expired();
    // If the answer was lost, the lock may be held.
    const bool may_hold = value.kind == Value::Kind::kArray || value.kind == Value::Kind::kLost;
    if (may_hold && (!alive || value.kind == Value::Kind::kLost)) core->unlock(key, owner);
    if (alive) receive(value);
  });
}

void RedisWait::receive(const Value& value) {
  trying_ = false;
  const Reply reply = reply_of(value);
  if (reply.kind == Reply::Kind::kGrant) {
    granted_ = true;
    core_.record_granted(*this);
    return answer(reply);
  }
  if (reply.kind != Reply::Kind::kInteger) return answer(reply);
  if (is_due(until_, Loop::now())) return answer({Reply::Kind::kNull, 0, {}});
  if (again_) return try_once();
  sleep(reply.number);
}

// Sleeps until the hold has certainly ended, by the server's clock in whole ms; negative: until an event.
// The first wait of its queue looks at the key meanwhile.
void RedisWait::sleep(int64_t left_ms) {
  const bool ends = core_.is_first(*this) && left_ms >= 0;
  due_at_ = ends ? saturating_add(Loop::now(), {std::min(left_ms, kMaxTtlMs) + 1}) : kNever;
  sleep_on();
}

void RedisWait::sleep_on() {
  const TimeMs look_at = core_.is_first(*this) ? Loop::now() + kLook : kNever;
  timer_.set(std::min({until_, due_at_, look_at}));
}

void RedisWait::on_time() {
  if (is_due(until_, Loop::now())) return answer({Reply::Kind::kNull, 0, {}});
  if (!listening_) return answer({Reply::Kind::kLost, 0, "no subscription in time"});
  is_due(due_at_, Loop::now()) ? try_once() : look();
}

// Makes an attempt if the key is gone. A DEL by another program sends no event.
void RedisWait::look() {
  core_.ask_whether_there(lock_.key, [this, life = std::weak_ptr(life_)](const Value& value) {
    if (life.expired() || trying_) return;
    const bool gone = value.kind == Value::Kind::kInteger && value.integer == 0;
    gone ? try_once() : sleep_on();
  });
}

// Answers the wait. The callback may destroy this object.
void RedisWait::answer(const Reply& reply) {
  timer_.set(kNever);
  core_.watcher().unwatch(std::exchange(watch_, 0));
  const Link::Done done = std::exchange(done_, nullptr);
  core_.leave_queue(*this, reply.kind == Reply::Kind::kLost);
  done(reply);
}

void RedisCore::leave_queue(RedisWait& wait, bool lost) {
  const auto queue = queues_.find(wait.queue_key());
  const bool was_first = queue->second.front() == &wait;
  queue->second.remove(&wait);
  if (queue->second.empty()) {
    queues_.erase(queue);
  } else if (closed_) {
    // All waits end, so no other wait becomes the first.
  } else if (lost) {
    for (RedisWait* other : queue->second) other->lead();
  } else if (was_first) {
    queue->second.front()->lead();
  }
}

}  // namespace holdfast::client
