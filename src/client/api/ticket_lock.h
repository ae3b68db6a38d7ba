// A lock that waits by ticket on a quorum of Holdfast servers: drives a TicketWait over the channels of the
// client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/algorithm/ticket_wait.h"
#include "client/api/lock_driver.h"
#include "client/api/slots.h"
#include "client/transport/channel.h"
#include "client/transport/transport.h"

namespace holdfast {

class TicketLock final : public LockDriver,
                         public client::ChannelUser,
                         public std::enable_shared_from_this<TicketLock> {
 public:
  struct Settings {
    client::TicketConfig config;
    std::vector<std::shared_ptr<client::Channel>> channels;  // one for each server
    // The acquisition ends when the servers have confirmed the hold: nobody renews it, or the user is
    // warned some time before the end of its validity, which may be longer than that of votes.
    bool confirms_first = false;
    size_t max_attempts = 0;  // without a quorum that answers; 0: no limit
    std::string slot = {};    // the name of a slot of its own; empty: a slot of `slots`
  };

  // `loop`, `slots` and `user` must outlive this object; after retire() `user` need not.
  TicketLock(client::Loop& loop, Slots& slots, LockUser& user, Settings settings);
  ~TicketLock() override;

  void acquire() override;
  void renew(DurationMs ttl, bool repair) override;
  void stop_renewing() override { renewal_.under_way = false; }
  void release(DurationMs at_least) override;
  void leave() override;
  void retire() override;

  State state() const override;
  bool is_finished() const override;
  bool is_too_new() const override { return too_new_; }
  const Status& status() const override { return status_; }
  const Status* renewal() const override;
  size_t attempts() const override { return attempts_; }
  std::string owner() const override;
  uint64_t token() const override { return wait_->token(); }
  TimeMs valid_until() const override { return {wait_->valid_until().count / 1000}; }

  // As a user of channels:
  void answered(const client::Asked& asked, const client::Answer& answer) override;
  void pushed(size_t server, const client::Push& push) override;
  void reconnected(size_t server) override;
  void restarted(size_t server) override;
  client::DurationUs heartbeat_every() const override;
  client::DurationUs patience() const override;

 private:
  struct Renewal {
    bool under_way = false;
    std::optional<Status> outcome;  // of the last one
  };

  client::Channel& channel(size_t server) const { return *settings_.channels[server]; }
  void begin();
  void drive();
  void send_requests();
  void judge();
  void follow_wait();
  void follow_renewal(Outcome outcome);
  void follow_leave();
  void follow_end(State before);
  // The servers have the hold: it was left, or is kept for a while after its release, or the user has it.
  bool holds() const;
  bool is_done() const;
  void record(const client::Asked& asked, const client::Answer& answer);
  void forget_answers();
  bool has_failed(size_t server) const;
  // How many servers may fail.
  size_t spare() const { return settings_.channels.size() - settings_.config.quorum; }
  bool lacks_quorum() const;
  void record_silence();
  void on_parked();
  client::TimeUs next_deadline() const;
  void on_time();
  void tell();

  Slots& slots_;
  LockUser* user_;  // null after retire()
  const Settings settings_;
  const std::shared_ptr<client::TicketSlot> slot_;
  std::optional<client::TicketWait> wait_;  // none before acquire()
  std::vector<ServerReport> reports_;       // the last answer of each server
  State known_state_ = State::kAcquiring;
  Status status_;
  Renewal renewal_;
  std::optional<Outcome> failure_;  // why this object has ended the acquisition
  bool has_held_ = false;
  bool too_new_ = false;  // a server does not know tickets
  bool left_ = false;
  bool has_quorum_ = false;  // after leave()
  size_t attempts_ = 1;
  size_t unlocks_ = 0;    // UNLOCKs that were neither answered nor lost, as far as known
  client::TimeUs begun_;  // the acquisition
  client::TimeUs end_at_ = client::kNeverUs;      // then no answer is awaited any more
  client::TimeUs attempt_at_ = client::kNeverUs;  // during parking: then the next attempt counts
  client::LoopTimer timer_;
};

}  // namespace holdfast
