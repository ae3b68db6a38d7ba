// One client of the world: it acquires a lock again and again through a TicketWait, over connections that
// it opens as Pulse says. What the library's transport does with sockets, it does with the simulated
// network.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/algorithm/pulse.h"
#include "client/algorithm/ticket_slot.h"
#include "client/algorithm/ticket_wait.h"
#include "ticket_clock.h"
#include "ticket_network.h"

namespace holdfast::simulation::ticket {

class Client;

struct Surroundings {
  Events& events;
  Network& network;
  std::function<int64_t()> think_us;  // before the next acquisition
  std::function<int64_t()> hold_us;   // in the critical section
  std::function<void(Client&)> entered;
  std::function<void(Client&)> left;
  std::function<void(const std::string&)> tell;  // the story of a run; may be null
};

struct ClientPlan {
  size_t index = 0;
  size_t group = 0;
  Clock clock;
  int64_t wall_skew_us = 0;
  client::TicketConfig config;
};

class Client {
 public:
  Client(ClientPlan plan, Surroundings& around);

  void begin();
  // It stops without a word: its connections stay open.
  void vanish();

  void opened(const ConnectionPtr& c);
  void refused(const ConnectionPtr& c);
  void receive(const ConnectionPtr& c, Connection::Packet&& packet);

  // What the judge asks.
  struct Record {
    uint64_t grants = 0;
    uint64_t lost = 0;
    int64_t longest_wait_us = 0;
    int64_t asked_us = -1;  // since when it waits; -1: it does not wait
  };
  Record& record() { return record_; }
  const ClientPlan& plan() const { return plan_; }
  client::LockMode mode() const { return plan_.config.terms.mode; }
  bool gone() const { return gone_; }
  bool holds() const { return inside_; }
  bool has_votes() const;
  uint64_t token() const { return wait_->token(); }
  bool knows_loss() const { return told_of_loss_; }
  // The end of the validity that the user has read, in the world's time.
  int64_t valid_until_us() const { return valid_us_; }

 private:
  struct Open {
    ConnectionPtr connection;
    std::deque<std::optional<client::Asked>> pending;  // nullopt: HELLO
    std::string unread;
  };
  struct Link {
    std::map<uint64_t, Open> open;  // by number
    int64_t pause_us = 0;           // before the next connection after a refused one
    int64_t reopen_us = INT64_MAX;
  };

  client::TimeUs now() const { return {plan_.clock.at(around_.events.now_us())}; }
  uint64_t wall_us() const;
  Link& link(size_t server) { return links_[server]; }
  Open* newest(size_t server);
  Open* open(size_t server);
  void send(const client::Asked& asked);
  void beat(size_t server);
  void close_before(size_t server, uint64_t number);
  void lose(const ConnectionPtr& c, int64_t pause_us);
  void handle(size_t server, uint64_t number, const client::Value& value, bool push);
  void answered(const client::Asked& asked, uint64_t number, const client::Value& value);
  void pushed(size_t server, const client::Value& value);
  void acquire();
  void wake();
  void look_after_links();
  void act();
  void pump();
  void observe();
  void lose_hold();
  void arm();
  int64_t next_us() const;

  ClientPlan plan_;
  Surroundings& around_;
  client::TicketSlot slot_;
  std::vector<client::Pulse> pulses_;
  std::unique_ptr<client::TicketWait> wait_;
  std::vector<Link> links_;
  Record record_;
  bool gone_ = false;
  bool inside_ = false;
  bool told_of_loss_ = false;  // during the present hold
  int64_t valid_us_ = 0;
  int64_t act_us_ = INT64_MAX;  // the end of the pause, or of the critical section
  int64_t renew_us_ = INT64_MAX;
  int64_t armed_us_ = INT64_MAX;
};

}  // namespace holdfast::simulation::ticket
