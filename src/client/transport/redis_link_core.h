// The parts of a RedisLink.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client/transport/nodes.h"
#include "client/transport/redis_script.h"
#include "client/transport/transport.h"
#include "client/transport/watcher.h"

namespace holdfast::client {

class RedisCore;

// The time after which a wait checks again that the key exists.
inline constexpr DurationMs kLook{1000};

// Whether the value is an error that begins with `code`.
inline bool has_code(const Value& value, std::string_view code) {
  return value.kind == Value::Kind::kError && std::string_view(value.text).starts_with(code);
}
// Returns the time left until the deadline, at least 1 ms, so that a late request is still sent once.
inline DurationMs left_until(TimeMs deadline) {
  return {std::max<int64_t>((deadline - Loop::now()).count, 1)};
}

// A LOCK that waits: it subscribes first, then makes an attempt, then sleeps until an event comes or a hold
// ends. Waits of this link for the same key and mode form a queue. Only the first of the queue makes an
// attempt after that, because Redis admits or refuses all of them alike.
class RedisWait {
 public:
  RedisWait(RedisCore& core, WaitingLock lock, Link::Done done);
  // Releases the lock that it got or may still get, unless a LOCK took it over.
  ~RedisWait();
  RedisWait(const RedisWait&) = delete;
  RedisWait& operator=(const RedisWait&) = delete;

  // A LOCK of the same owner was sent: the hold belongs to the sender now.
  void take_over() { granted_ = false; }
  const std::string& owner() const { return lock_.owner; }
  // The key and the mode. Redis admits or rejects waits with the same queue key alike.
  using QueueKey = std::pair<std::string, Argv>;
  const QueueKey& queue_key() const { return queue_key_; }
  // This wait is now the first of its queue: makes an attempt.
  void lead();

 private:
  void on_event(const std::string& message);
  void try_once();
  void receive(const Value& value);
  void on_time();
  void sleep(int64_t left_ms);
  void sleep_on();
  void look();
  void answer(const Reply& reply);

  RedisCore& core_;
  const WaitingLock lock_;
  const QueueKey queue_key_;
  Link::Done done_;  // null after the answer
  const TimeMs until_;
  TimeMs due_at_;           // when a hold ends; before the first event: timeout of the subscription
  bool listening_ = false;  // the subscription is active
  bool tried_ = false;
  bool trying_ = false;  // an attempt is under way
  bool again_ = false;   // an event came during the attempt: make another one
  bool granted_ = false;
  Link::Watch watch_ = 0;
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

class RedisCore : public std::enable_shared_from_this<RedisCore> {
 public:
  RedisCore(Loop& loop, const Address& address);

  void ask(const Argv& argv, DurationMs timeout, Link::Answered done);
  Link::Wait wait(const Argv& argv, const Link::Done& done);
  void end(Link::Wait wait);
  // The link was destroyed: no callback is called any more.
  void close();

  Loop& loop() { return loop_; }
  Watcher& watcher() { return *watcher_; }
  // Makes an attempt for a wait. It may make a hold that must be released, so `done` is also called after
  // the wait was destroyed.
  void attempt(const ScriptCall& call, const Link::Answered& done);
  void unlock(const std::string& key, const std::string& owner);
  // Asks for the number of keys with this name, 0 or 1. After close() `done` is not called.
  void ask_whether_there(const std::string& key, const Link::Answered& done);
  void record_granted(RedisWait& wait) { granted_[wait.owner()] = &wait; }
  void forget_granted(const RedisWait& wait) { granted_.erase(wait.owner()); }
  void join_queue(RedisWait& wait) { queues_[wait.queue_key()].push_back(&wait); }
  bool is_first(const RedisWait& wait) const { return queues_.at(wait.queue_key()).front() == &wait; }
  // Removes the wait from its queue; if it was the first, the next one becomes the first. If the server is
  // `lost`, every wait of the queue makes an attempt of its own.
  void leave_queue(RedisWait& wait, bool lost);

 private:
  using CallPtr = std::shared_ptr<const ScriptCall>;

  void run(const CallPtr& call, DurationMs timeout, const RedisNodes::Done& done);
  void run_asked(const CallPtr& call, DurationMs timeout, Link::Answered done);
  void confirm(const CallPtr& call, const Value& grant, RedisNodes::Spot spot, TimeMs deadline,
               const Link::Answered& done);
  void undo_grant(const CallPtr& call, const std::string& why, const Link::Answered& done);
  struct Listing;
  using ListingPtr = std::shared_ptr<Listing>;
  void list(const Translation& what, DurationMs timeout, Link::Answered done);
  void on_scan(const ListingPtr& page, int slot, const Value& value, RedisNodes::Spot at);
  void ask_row(const ListingPtr& page, size_t i);
  void on_row(const ListingPtr& page, size_t i, const Value& value);
  void record_lease(const ScriptCall& call, const Value& value);
  void later(Value value, Link::Answered done);
  void begin_pending() { ++pending_; }
  void end_pending();

  Loop& loop_;
  const Address address_;
  RedisNodes nodes_;
  std::unique_ptr<Watcher> watcher_;
  std::map<RedisWait::QueueKey, std::list<RedisWait*>> queues_;  // no queue is empty
  std::map<std::string, RedisWait*> granted_;                    // granted waits, by owner
  std::map<Link::Wait, std::unique_ptr<RedisWait>> waits_;
  Link::Wait last_wait_ = 0;
  std::map<std::string, Argv> leases_;  // by id: the KEYS of the leases granted here
  bool closed_ = false;
  size_t pending_ = 0;               // requests that must finish, also after close()
  std::shared_ptr<RedisCore> self_;  // after close(), keeps this object alive for them
};

}  // namespace holdfast::client
