// One acquisition of a lock on a quorum of servers, from the first request to the release, as a pure state
// machine: answers, pushes and times go in, requests come out. It owns no socket, clock or thread. With one
// server the lock is that server's lock.
//
// How it acquires. The client takes a ticket, (time, slot), and sends it to all servers. Each server gives
// its vote to the smallest ticket that waits there, and asks a younger one for its vote back. The client
// holds the lock when a quorum of votes has one token (ballot.h). While it has no quorum it gives each vote
// back that a server asks for. So the client with the smallest ticket of all gets all votes, whatever the
// order in which the servers heard of the clients. docs/safety.md explains why that is safe and live; the
// rules C1 to C8 in the comments are named there.
//
// The phases, each a struct in ticket_phases.h, made on entry and dropped on exit:
//   Waiting    an attempt is queued on all servers
//   Parked     no quorum is live: the client has left all queues until one is (C6)
//   Holding    the lock is held: confirm the votes, renew, repair servers without the hold (C7)
//   Keeping    the lock is released, but the servers keep the hold for a while
//   Releasing  UNLOCK is under way
//   Over       result() is the outcome
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/pulse.h"
#include "client/algorithm/ticket_phases.h"
#include "client/algorithm/ticket_requests.h"
#include "client/algorithm/ticket_slot.h"
#include "client/base/time_us.h"
#include "client/base/validity.h"
#include "holdfast/result.h"

namespace holdfast::client {

struct TicketConfig {
  size_t servers = 1;
  size_t quorum = 1;  // for this lock: wquorum, rquorum for a shared lock, all servers for a counted one
  // The hold is lost when so many servers are without it: they can grant the lock to a client that the hold
  // excludes. 0: servers + 1 - quorum.
  size_t breach = 0;
  LockTerms terms;
  DurationMs ttl{30000};
  // How long the wait may last. 0: one try, which ends as soon as a quorum cannot be had. nullopt: no
  // limit.
  std::optional<DurationUs> limit;
  DurationUs server_timeout{1'000'000};  // a try and a release end without the answers that took longer
  double drift = kDrift;
  TicketTimes times;
};

class TicketWait {
 public:
  enum class State : uint8_t { kIdle, kWaiting, kParked, kHolding, kKeeping, kReleasing, kOver };

  // `slot` and `pulses` (one for each server) must outlive this object. A slot has one TicketWait at a
  // time: the next one may begin when this one is in state kReleasing or kOver.
  TicketWait(TicketConfig config, TicketSlot& slot, Pulses pulses);

  // Begins to acquire; call it once. `clock_us` is the wall clock in us, the source of the ticket and of
  // the hint for tokens: a wrong clock costs a round trip, never safety.
  void acquire(TimeUs now, uint64_t clock_us);
  // Begins a renewal; only in state kHolding. The hold stays until its validity ends, whatever the outcome.
  // After kExpired nothing renews it.
  // An unfinished renewal is forgotten. A round without a quorum of answers is repeated until the validity
  // ends.
  // `repair`: servers without the hold get it again; otherwise they are only counted.
  void renew(TimeUs now, DurationMs ttl, bool repair = true);
  // Releases the lock, or cancels the wait: UNLOCK goes to every server. `at_least` counts from the
  // acquisition. If it is not over, the servers get UNLOCK at its end, and the hold is shortened to that
  // time, in case this client ends before. Until then the slot cannot acquire again.
  void release(TimeUs now, DurationUs at_least = {0});

  // The answer to a request of take_requests(), which the driver hands back. Only answers that
  // Pulse::answered() accepts; call that first.
  void on_answer(const Asked& asked, const Answer& answer, TimeUs now);
  // A push for an owner of this slot. Only from connections that Pulse::accepts() accepts.
  void on_push(size_t server, const Push& push, TimeUs now);
  // Requests to the server go over a new connection from now on; those before may be lost.
  void on_connection(size_t server, TimeUs now);
  // The server has restarted, or may have (Pulse::record_run()): its queue is empty.
  void on_restart(size_t server, TimeUs now);
  // Handles all deadlines up to `now`.
  void on_time(TimeUs now);
  // Returns when on_time() is needed; kNeverUs if there is no deadline.
  TimeUs next_deadline() const;

  // Returns the requests to send now, each once, in their order.
  std::vector<Asked> take_requests() { return std::exchange(outgoing_, {}); }
  // How often each server must get a heartbeat; kForeverUs: none is needed.
  DurationUs heartbeat_every() const;
  // The least pause between two connections to a silent server; kForeverUs: none is needed.
  DurationUs patience() const;

  State state() const { return static_cast<State>(phase_.index()); }
  // Whether no answer is awaited any more: the object can be dropped.
  bool settled() const { return state() == State::kOver && outgoing_.empty(); }
  const LockTerms& terms() const { return config_.terms; }
  // The owner of the present or last attempt.
  std::string owner() const { return slot_.owner(); }
  // Whether some server has given this attempt its vote.
  bool has_votes() const;
  // In state kHolding:
  uint64_t token() const;
  // Until when the lock is certainly held, drift subtracted. It is lost when `now` reaches this.
  TimeUs valid_until() const;
  // Whether a quorum has confirmed the votes: from then on the validity is that of the TTL. A caller that
  // does not renew waits for this.
  bool confirmed() const;
  // The outcome of the last complete renewal, or of the confirmation; nullopt before it and meanwhile.
  // kExpired: too few servers have the hold. Others may get the lock, at the latest after valid_until().
  std::optional<Outcome> renewal() const;
  // In the states after kHolding: why the acquisition failed, or how the hold ended; nullopt while too few
  // servers have answered UNLOCK.
  std::optional<Outcome> outcome() const;

  // Asserts the invariants of the state machine.
  void check_invariants() const;

 private:
  // ticket_wait.cc: changes of phase, and what all phases use
  void begin_attempt(TimeUs now);
  void park(TimeUs now);
  void hold(const Ballot::Win& win, TimeUs now);
  void end(Outcome outcome, TimeUs now);
  void ask(size_t server, TicketRequest request, TimeUs now);
  void ask_again(size_t server, TimeUs now);
  void unlock_everywhere(TimeUs now);
  void unlock_again(size_t server, TimeUs now);
  void record_told(const Asked& asked);
  void disown(size_t server, const std::string& owner, TimeUs now);
  void learn(size_t server, uint64_t token, uint64_t floor, const std::vector<std::string>& over);
  bool has_attempt() const;
  bool tries_once() const { return config_.limit && config_.limit->count == 0; }
  bool is_live(TimeUs now, DurationUs span) const;
  TimeUs heard_by_quorum() const;
  DurationUs quorum_rtt() const;
  DurationUs live_span() const;

  // ticket_waiting.cc
  void run(Waiting& waiting, TimeUs now);
  TimeUs next_deadline(const Waiting& waiting) const;
  void wait_at(Attempt& attempt, size_t server, TimeUs now);
  void wait_everywhere(Attempt& attempt, TimeUs now);
  void answered(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now);
  void answered_wait(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now);
  void answered_raise(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now);
  void refused(Waiting& waiting, const Asked& asked, const Refusal& refusal, TimeUs now);
  bool lower_ticket(size_t server, TimeUs now);
  void voted(Waiting& waiting, size_t server, const VotePush& vote, TimeUs now);
  void inquired(Waiting& waiting, size_t server, uint64_t token, TimeUs now);
  void record_vote(Waiting& waiting, size_t server, uint64_t token, TimeMs since, TimeUs now);
  void record_floor(size_t server, uint64_t floor, TimeUs now);
  void judge(Waiting& waiting, TimeUs now);
  void raise_tokens(Waiting& waiting, uint64_t token, TimeUs now);
  void raise_at(Waiting& waiting, size_t server, TimeUs now);
  void ask_again(Waiting& waiting, size_t server, TimeUs now);
  void give_up_attempt(TimeUs now);
  bool is_hopeless(const Waiting& waiting) const;
  Outcome why_not_acquired(const Waiting& waiting) const;
  TimeUs park_at(const Waiting& waiting) const;

  // ticket_holding.cc
  void run(Holding& holding, TimeUs now);
  TimeUs next_deadline(const Holding& holding) const;
  void begin_round(Holding& holding, DurationMs ttl, bool repairs, TimeUs now);
  void renew_at(Holding& holding, size_t server, TimeUs now);
  void inquired(Holding& holding, size_t server, TimeUs now);
  DurationUs repeat_pause() const;
  void repeat_round(Holding& holding, TimeUs now);
  void repair_at(Holding& holding, size_t server, TimeUs now);
  void ask_again(Holding& holding, size_t server, TimeUs now);
  void answered(Holding& holding, const Asked& asked, const Answer& answer, TimeUs now);
  void answered_renew(Holding& holding, const Asked& asked, const Answer& answer, TimeUs now);
  void record_failure(Holding& holding, const Asked& asked);
  void report_if_hopeless(Holding& holding);
  void voted(Holding& holding, size_t server, const VotePush& vote, TimeUs now);
  void record_hold(Holding& holding, size_t server, uint64_t token, TimeUs now);
  void record_end(Holding& holding, size_t server, TimeUs now);
  void judge(Holding& holding, TimeUs now);
  static void lose(Holding& holding);
  bool may_repair(const Holding& holding) const;
  bool lacks_hold(const Holding& holding) const;

  // ticket_keeping.cc
  void keep(TimeUs until, TimeUs now);
  void shorten_at(Keeping& keeping, size_t server, TimeUs now);
  void run(Keeping& keeping, TimeUs now);
  TimeUs next_deadline(const Keeping& keeping) const;
  void answered(Keeping& keeping, const Asked& asked, const Answer& answer, TimeUs now);
  void voted(Keeping& keeping, size_t server, const VotePush& vote, TimeUs now);

  // ticket_parked.cc
  void run(Parked& parked, TimeUs now);
  TimeUs next_deadline(const Parked& parked) const;
  void ask_again(Releasing& releasing, size_t server, TimeUs now);
  void run(Releasing& releasing, TimeUs now);
  TimeUs next_deadline(const Releasing& releasing) const;
  void answered(Releasing& releasing, const Asked& asked, const Answer& answer, TimeUs now);

  TicketConfig config_;
  TicketSlot& slot_;
  Pulses pulses_;
  Ticket ticket_;
  Phase phase_;
  TimeUs wait_until_ = kNeverUs;
  std::vector<Asked> outgoing_;
};

}  // namespace holdfast::client
