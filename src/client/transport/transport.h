// What carries requests: a loop in a thread of its own, timers on it, and links to servers. Everything here
// but post() and the clocks is for that thread alone, and asserts it. What a server is, is known to its
// link alone.
//
// No callback is called from within the function that it was given to, and each may call anything here,
// also destroy the object that calls it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/base/address.h"
#include "client/base/value.h"
#include "core/base/types.h"

namespace holdfast::client {

class Loop {
 public:
  // Throws std::system_error where the process may open no more files or start no more threads.
  Loop();
  // Runs what was posted, ends the thread; not from that thread. Links and timers must have gone, or go by
  // what was posted. A name that is being looked up is waited for: the system's resolver cannot be stopped.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // From any thread: `work` will run on the loop's, in the order of the calls.
  void post(std::function<void()> work);
  bool on_thread() const;

  // A clock that is monotonic and runs through suspends, and the wall clock.
  static TimeMs now();
  static uint64_t clock_us();

  struct Core;
  Core& core() { return *core_; }

 private:
  std::unique_ptr<Core> core_;
};

// Fires once at a time; may be set anew, and is cancelled by its end.
class LoopTimer {
 public:
  LoopTimer(Loop& loop, std::function<void()> fire);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;
  void set(TimeMs at);  // in place of what was set before; the past: soon; kNever: not at all

  struct Core;

 private:
  Core* core_;  // its handle outlives this object until libuv has closed it
};

// One server, of whatever kind: the one interface of all providers. A link that is destroyed loses whatever
// is under way, without a word.
class Link {
 public:
  using Done = std::function<void(const Reply&)>;
  using Answered = std::function<void(const Value&)>;

  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Calls `done` exactly once: with the reply, of any shape, or with kLost: after `timeout`, or when the
  // connection breaks. A request that was lost may still reach the server, in its order with the others.
  // Not for requests that wait at the server, as they hold up all behind them, nor for those that are
  // answered by more than one reply (SUBSCRIBE, MONITOR).
  virtual void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) = 0;
  // The same for replies that have the shapes of Reply, as reply_of() has it.
  void send(const std::vector<std::string>& argv, DurationMs timeout, Done done);

  // Sends over a connection of its own, for a request that may wait, for as long as it takes. `done` is
  // called once, with kLost where the connection breaks before the reply. After the reply the connection
  // stays open, as a SESSION hold goes with it, until end(): closes it at once, and `done` will not be
  // called any more. To end one that is over is no mistake.
  using Wait = uint64_t;
  virtual Wait wait(const std::vector<std::string>& argv, const Done& done) = 0;
  virtual void end(Wait wait) = 0;

  // Calls `told(message)` for each message of a channel, and `told("")` whenever the subscription becomes
  // active: at the beginning, and again after the connection was lost, as messages may have been missed.
  // After unwatch() nothing more is told.
  using Watch = uint64_t;
  virtual Watch watch(const std::string& channel, std::function<void(const std::string&)> told) = 0;
  // The same for all channels that match a pattern of PSUBSCRIBE: `told(channel, message)`, and
  // `told(pattern, "")`.
  using ToldOf = std::function<void(const std::string& channel, const std::string& message)>;
  virtual Watch watch_pattern(const std::string& pattern, ToldOf told) = 0;
  virtual void unwatch(Watch watch) = 0;
  // From now on calls `told(why)` whenever the connection of the watches broke or could not be made; it is
  // tried again. The last call counts.
  virtual void on_watch_loss(std::function<void(const std::string& why)> told) = 0;
};

// The link for the kind of server that `address` names.
std::unique_ptr<Link> make_link(Loop& loop, const Address& address);

// What has to be there so that all links to `address` find the same server: the engine, where it is in this
// process; else nothing. Throws std::system_error as Loop does.
std::shared_ptr<void> server_of(const Address& address);

// An array that is no grant comes as kError.
Reply reply_of(const Value& value);

}  // namespace holdfast::client
