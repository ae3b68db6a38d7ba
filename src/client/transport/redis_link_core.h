// What a RedisLink consists of.
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

// Whether an error has this code, or begins so.
inline bool has_code(const Value& value, std::string_view code) {
  return value.kind == Value::Kind::kError && std::string_view(value.text).starts_with(code);
}
// At least 1 ms, so that what is late already is still asked once.
inline DurationMs left_until(TimeMs deadline) {
  return {std::max<int64_t>((deadline - Loop::now()).count, 1)};
}

// A LOCK that waits: listen first, then try, then sleep until something is heard or a hold ends. Of those
// that wait here for the same, only the first of a line tries then: what it is refused, all are.
class RedisWait {
 public:
  RedisWait(RedisCore& core, WaitingLock lock, Link::Done done);
  // Releases what it has got or may get, unless that was taken over.
  ~RedisWait();
  RedisWait(const RedisWait&) = delete;
  RedisWait& operator=(const RedisWait&) = delete;

  // A LOCK of its owner has been sent: whoever sent it has the hold now.
  void take_over() { granted_ = false; }
  const std::string& owner() const { return lock_.owner; }
  // What is admitted alike: the key and the mode.
  using Wish = std::pair<std::string, Argv>;
  const Wish& wish() const { return wish_; }
  // Now it is the first of its line.
  void lead();

 private:
  void hear_event(const std::string& message);
  void try_once();
  void hear(const Value& value);
  void on_time();
  void sleep(int64_t left_ms);
  void answer(const Reply& reply);

  RedisCore& core_;
  const WaitingLock lock_;
  const Wish wish_;
  Link::Done done_;  // null: answered
  const TimeMs until_;
  TimeMs look_at_;          // a hold has ended; before the first event: there is no subscription
  bool listening_ = false;  // there has been an event
  bool tried_ = false;
  bool trying_ = false;  // an attempt is under way,
  bool again_ = false;   // and something has happened since
  bool granted_ = false;
  Link::Watch watch_ = 0;
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // ends with this
};

class RedisCore : public std::enable_shared_from_this<RedisCore> {
 public:
  RedisCore(Loop& loop, const Address& address);

  void ask(const Argv& argv, DurationMs timeout, Link::Answered done);
  Link::Wait wait(const Argv& argv, const Link::Done& done);
  void end(Link::Wait wait);
  // The link has gone: nothing is told any more.
  void close();

  Loop& loop() { return loop_; }
  Watcher& watcher() { return *watcher_; }
  // An attempt of a wait, which may make a hold that has to be released. `done` must not rely on the wait.
  void attempt(const ScriptCall& call, const Link::Answered& done);
  void unlock(const std::string& key, const std::string& owner);
  void note_granted(RedisWait& wait) { granted_[wait.owner()] = &wait; }
  void forget_granted(const RedisWait& wait) { granted_.erase(wait.owner()); }
  void join_line(RedisWait& wait) { lines_[wait.wish()].push_back(&wait); }
  bool is_first(const RedisWait& wait) const { return lines_.at(wait.wish()).front() == &wait; }
  // The next is the first then. Where the server is `lost`, each finds out for itself.
  void leave_line(RedisWait& wait, bool lost);

 private:
  using CallPtr = std::shared_ptr<const ScriptCall>;

  void run(const CallPtr& call, DurationMs timeout, const RedisNodes::Done& done);
  void run_asked(const CallPtr& call, DurationMs timeout, Link::Answered done);
  void confirm(const CallPtr& call, const Value& grant, RedisNodes::Spot spot, TimeMs deadline,
               const Link::Answered& done);
  void give_back(const CallPtr& call, const std::string& why, const Link::Answered& done);
  struct Listing;
  using ListingPtr = std::shared_ptr<Listing>;
  void list(const Translation& what, DurationMs timeout, Link::Answered done);
  void hear_scan(const ListingPtr& page, int slot, const Value& value, RedisNodes::Spot at);
  void ask_row(const ListingPtr& page, size_t i);
  void hear_row(const ListingPtr& page, size_t i, const Value& value);
  void note_lease(const ScriptCall& call, const Value& value);
  void later(Value value, Link::Answered done);
  void begin_pending() { ++pending_; }
  void end_pending();

  Loop& loop_;
  const Address address_;
  RedisNodes nodes_;
  std::unique_ptr<Watcher> watcher_;
  std::map<RedisWait::Wish, std::list<RedisWait*>> lines_;  // none is empty
  std::map<std::string, RedisWait*> granted_;               // by owner; not yet taken over
  std::map<Link::Wait, std::unique_ptr<RedisWait>> waits_;
  Link::Wait last_wait_ = 0;
  std::map<std::string, Argv> leases_;  // by id: the KEYS of those that were granted here
  bool closed_ = false;
  size_t pending_ = 0;               // what has to be finished, also when the link has gone
  std::shared_ptr<RedisCore> self_;  // then it keeps itself
};

}  // namespace holdfast::client
