// The connections for tickets to one Holdfast server (docs/protocol.md: LOCK ... TICKET). All waits of a
// client for locks of that server share them.
//
// Usually there is one connection. If the server is silent, or a connection breaks, the channel opens a
// further one beside it, and requests go over the newest one. As soon as that one has answered, the older
// ones are closed (Pulse). The first request of each connection is a heartbeat: its answer shows whether
// the server knows tickets, and whether it has restarted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/algorithm/pulse.h"
#include "client/algorithm/ticket_phases.h"
#include "client/algorithm/ticket_requests.h"
#include "client/transport/backoff.h"
#include "client/transport/connection.h"
#include "client/transport/transport.h"

namespace holdfast::client {

// One wait of a client. `server` is the number that it has given the server in join(). Each function may
// call the channel, and may end any wait.
class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  // The answer to a request of this wait, or the reason why there will be none.
  virtual void answered(const Asked& asked, const Answer& answer) = 0;
  virtual void pushed(size_t server, const Push& push) = 0;
  // Requests go over a new connection from now on; those before may be lost.
  virtual void reconnected(size_t server) = 0;
  // The server has restarted: its queue is empty.
  virtual void restarted(size_t server) = 0;
  // How often the server must get a heartbeat, and the least pause between two connections to a silent
  // server; kForeverUs: none is needed.
  virtual DurationUs heartbeat_every() const = 0;
  virtual DurationUs patience() const = 0;
};

class Channel {
 public:
  // Gets the duration of each request of a wait, and whether it was answered. May be empty.
  using OnRequest = std::function<void(bool answered, DurationUs took)>;
  enum class Tickets : uint8_t { kUnknown, kKnown, kNotKnown };

  // Makes no connection yet.
  Channel(Loop& loop, Address address, OnRequest on_request = nullptr, const TicketTimes& times = {});
  // Drops all requests without an answer.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // From now on the wait gets the pushes for this key and slot, and the news of connections. A later wait
  // of the same slot takes its place.
  void join(const std::string& key, const std::string& slot, size_t server,
            const std::shared_ptr<ChannelUser>& user);
  // Ends that; no effect if another wait has taken its place.
  void leave(const std::string& key, const std::string& slot, const ChannelUser& user);
  // Sends a request of a wait. The wait gets the answer, unless it has been destroyed, or a newer
  // connection answers first: then it has got reconnected().
  void send(const std::shared_ptr<ChannelUser>& user, const Asked& asked, const LockTerms& terms);
  // heartbeat_every() or patience() of a wait may have become shorter.
  void look(const ChannelUser& user);

  const Pulse& pulse() const { return pulse_; }
  // Whether the server knows tickets, as far as its last answer says. A server without tickets may be
  // upgraded, so after a while (kAskedAgain) that is not known any more.
  Tickets tickets() const;

  // Beyond so many connections without an answer the oldest of them is closed.
  static constexpr size_t kMostConnections = 16;
  static constexpr DurationUs kAskedAgain{60'000'000};

 private:
  class Line;
  // A request without an answer. A heartbeat has no user.
  struct Sent {
    Asked asked;
    std::weak_ptr<ChannelUser> user;
    TimeUs at;  // when the connection took it
  };
  struct Seat {
    size_t server = 0;
    std::weak_ptr<ChannelUser> user;
    const ChannelUser* name = nullptr;  // the user, also while it is destroyed
  };
  using Name = std::pair<std::string, std::string>;  // key and slot

  bool has_newest() const;
  Line* newest();
  Line* find(uint64_t number);
  void open(TimeUs now);
  void send_heartbeat(TimeUs now);
  void answered(uint64_t number, const Sent& sent, const Value& value);
  void record_no_tickets();
  void answered_heartbeat(TimeUs sent, const Answer& answer);
  void pushed(uint64_t number, const Value& value);
  void broke(uint64_t number, const std::string& why);
  void lose(const std::deque<Sent>& requests, const std::string& why);
  void unlock(const std::string& key, const std::string& owner);
  void notify(void (ChannelUser::*news)(size_t server));
  void on_time();
  void close_silent(TimeUs now);
  TimeUs next_deadline() const;
  void arm();

  Loop& loop_;
  const Address address_;
  const OnRequest on_request_;
  Pulse pulse_;
  Tickets tickets_ = Tickets::kUnknown;
  TimeUs ask_again_at_ = kNeverUs;          // kNotKnown counts until then
  std::list<std::unique_ptr<Line>> lines_;  // oldest first
  std::map<Name, Seat> seats_;
  // The shortest times that a wait needs; may be shorter than that until the timer fires.
  DurationUs heartbeat_every_ = kForeverUs;
  DurationUs patience_ = kForeverUs;
  Backoff backoff_;
  TimeUs reopen_at_ = kNeverUs;   // the newest connection has ended
  bool tell_connection_ = false;  // the timer must call reconnected()
  std::deque<Sent> unsent_;       // requests that the timer reports as lost
  TimeUs alarm_ = kNeverUs;       // the time set for timer_
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
  LoopTimer timer_;
};

}  // namespace holdfast::client
