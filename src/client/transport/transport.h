// The transport of requests: a loop in a thread of its own, timers on it, and links to servers. All
// functions except post() and the clocks are for that thread only, and assert it. Only the link knows the
// kind of its server.
//
// No function calls a callback that it was given before it returns. A callback may call any function here,
// and may destroy the object that calls it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/algorithm/redlock.h"
#include "client/base/address.h"
#include "client/base/time_us.h"
#include "client/base/value.h"
#include "core/base/types.h"

struct uv_loop_s;

namespace holdfast::client {

class Loop {
 public:
  // Starts the thread. Throws std::system_error if the process can open no more files or start no more
  // threads.
  Loop();
  // Uses a loop of libuv that the caller runs, on the thread that makes this object, and makes no thread.
  // leave() must come before the destructor.
  explicit Loop(uv_loop_s& outside);
  // Runs the posted work and ends the thread; must not run on that thread. Links and timers must have been
  // destroyed, or the posted work destroys them. Waits for a running name lookup, because the system's
  // resolver cannot be stopped.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Only for a loop of the caller: closes the last handle. Links and timers must have been destroyed. Work
  // that is posted later never runs.
  void leave();

  // Lets `work` run on the loop's thread, in the order of the calls. Any thread.
  void post(std::function<void()> work);
  // Whether the caller runs on the loop's thread. Any thread.
  bool on_thread() const;

  // Return a monotonic clock that also runs while the machine is suspended, in ms and in us, and the wall
  // clock in us. Any thread.
  static TimeMs now();
  static int64_t now_us();
  static TimeUs time_us() { return {now_us()}; }
  static uint64_t clock_us();

  struct Core;
  Core& core() { return *core_; }

 private:
  std::unique_ptr<Core> core_;
};

// A timer that calls `fire` once for each set(). The destructor cancels it.
class LoopTimer {
 public:
  LoopTimer(Loop& loop, std::function<void()> fire);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;
  // Replaces the earlier time. A past time: fires soon; kNever, kNeverUs: does not fire. It fires up to 1
  // ms late.
  void set(TimeMs at);
  void set(TimeUs at);

  struct Core;

 private:
  Core* core_;  // its handle outlives this object until libuv has closed it
};

// One server of any kind: the common interface of all providers. The destructor drops all unfinished
// requests, waits and watches, and calls none of their callbacks.
class Link {
 public:
  using Done = std::function<void(const Reply&)>;
  using Answered = std::function<void(const Value&)>;

  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Sends a request. Calls `done` exactly once: with the reply, of any shape; or with kLost, after
  // `timeout` or when the connection breaks. A lost request may still reach the server, in its order with
  // the other requests. Not for requests that wait at the server, because they delay all later requests.
  // Not for requests with more than one reply (SUBSCRIBE, MONITOR).
  virtual void ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) = 0;
  // The same; converts the reply with reply_of().
  void send(const std::vector<std::string>& argv, DurationMs timeout, Done done);

  // Sends a request that may wait at the server, without a timeout, over a connection of its own. Calls
  // `done` once, with kLost if the connection breaks before the reply. After the reply the connection stays
  // open until end(), because a SESSION hold ends with it. end() closes it at once; `done` is not called
  // after that. It ignores a wait that is over.
  using Wait = uint64_t;
  virtual Wait wait(const std::vector<std::string>& argv, const Done& done) = 0;
  virtual void end(Wait wait) = 0;

  // Subscribes to a channel. Calls `on_message(message)` for each message, and `on_message("")` whenever
  // the subscription becomes active: at the beginning, and again after the connection was lost, because
  // messages may have been missed. After unwatch(), `on_message` is not called.
  using Watch = uint64_t;
  virtual Watch watch(const std::string& channel, std::function<void(const std::string&)> on_message) = 0;
  // The same for all channels that match a pattern of PSUBSCRIBE: `on_message(channel, message)`, and
  // `on_message(pattern, "")`.
  using OnPatternMessage = std::function<void(const std::string& channel, const std::string& message)>;
  virtual Watch watch_pattern(const std::string& pattern, OnPatternMessage on_message) = 0;
  virtual void unwatch(Watch watch) = 0;
  // From now on calls `callback(why)` whenever the connection of the watches breaks or fails to open; the
  // link retries. A later call replaces `callback`.
  virtual void on_watch_loss(std::function<void(const std::string& why)> callback) = 0;
};

// Returns a new link for the kind of server that `address` names.
std::unique_ptr<Link> make_link(Loop& loop, const Address& address);

// Returns the object that must stay alive so that all links to `address` reach the same server: the
// embedded engine; null for a server outside this process. Throws std::system_error as Loop does.
std::shared_ptr<void> server_of(const Address& address);

// Converts a Value to a Reply. An array that is not a grant becomes kError.
Reply reply_of(const Value& value);

}  // namespace holdfast::client
