// One lock by attempts (Redlock with fencing tokens), as a pure state machine: replies and time go in,
// requests come out. It owns no socket, clock or thread. Its driver sends the requests, passes on the
// replies, and calls on_time() at next_deadline(). It serves a single server of any kind, and quorums with
// a Redis or a server that does not know tickets. Other quorums wait by ticket (ticket_wait.h).
//
// An attempt sends LOCK to all servers of the key, with an owner of its own. If a quorum grants with one
// token, that is the lock's token. Otherwise FENCE raises the other grants to the largest token, and a
// quorum must confirm it. A failed attempt is released on every server.
//
// A wait for a single server uses the server's queue. A LOCK with WAIT and SESSION waits there, on a
// connection of its own. After its grant a LOCK without SESSION takes the grant over. So a waiter that
// vanishes leaves no hold, and the TTL of the hold counts from that last LOCK. With several servers, or if
// the queue is not available, attempts follow after random pauses, or sooner after on_freed().
//
// The phases, each a struct in redlock_phases.h, made on entry and dropped on exit:
//   Locking    LOCK is under way
//   Fencing    a quorum has granted with different tokens: FENCE is under way
//   Queueing   the request waits in the server's queue
//   Pausing    between two attempts
//   Held       with the last renewal: redlock_renewal.cc
//   Releasing  UNLOCK is under way
//   Over       result() is the outcome
//
// Why no token is granted twice, and tokens grow: a server acknowledges a token t (by its grant or by a
// FENCE reply equal to t) only while its counter is at least t and the owner's grant there is no larger
// than t. Two quorums share a server, and holds on one server do not overlap. So the later of the two
// acknowledgements there is for a grant after the earlier one: its token is at least counter + 1.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/lock_status.h"
#include "client/algorithm/redlock_phases.h"
#include "client/base/validity.h"
#include "core/base/types.h"
#include "holdfast/result.h"

namespace holdfast::client {

// Growing pauses with full jitter: the n-th pause is a random time from 0 to first * factor^(n-1), at most
// `longest`.
struct GrowingPause {
  DurationMs first{100};
  double factor = 2;
  DurationMs longest{10000};
};

struct RedlockConfig {
  size_t servers = 1;
  size_t quorum = 1;  // for this lock: wquorum, or rquorum for a shared lock
  // The hold is lost when so many servers are without it: they can grant the lock to a client that the
  // hold excludes. 0: servers + 1 - quorum.
  size_t breach = 0;
  DurationMs ttl{30000};  // 1 to kMaxTtlMs; no attempt succeeds if the drift is as long as the TTL
  DurationMs server_timeout{1000};  // a server without an answer after this counts as refusing
  DurationMs min_wait{10};          // the pause between attempts is a random time from min_wait to max_wait
  DurationMs max_wait{100};
  std::optional<GrowingPause> backoff;  // instead of min_wait and max_wait
  // If no queue is available, the wait ends after so many attempts; 0: no limit.
  size_t max_attempts = 0;
  bool queues = true;  // false: a wait consists of attempts only; with several servers it always does
  // For how long new attempts begin; nullopt: one attempt; 0: no limit. A running attempt is completed.
  std::optional<DurationMs> wait;
  double drift = kDrift;
};

// A request for the driver to send, in the order of the list. `id` names it in on_reply().
struct Send {
  size_t server = 0;
  uint64_t id = 0;
  std::vector<std::string> argv;
  // The request may wait in the server's queue. It needs a connection of its own, which stays open until
  // take_ends() names it, also after the reply. Its grant is a SESSION hold, which ends with that
  // connection; a LOCK takes it over before that.
  bool waits = false;
};

// The answer to a Send. Every Send gets exactly one, unless take_ends() named it.
struct Reply {
  enum class Kind : uint8_t {
    kGrant,    // [owner, token]; `number` is the token, `text` the owner
    kNull,     // not granted
    kInteger,  // `number`
    kText,     // `text`: a status as OK, or a bulk
    kError,    // `error`, and `text` for people
    kLost,     // no answer will come, because the connection broke; `text` has the cause
  };
  Kind kind = Kind::kLost;
  int64_t number = 0;
  std::string text;
  ServerError error = ServerError::kNone;
};

class Redlock {
 public:
  enum class State : uint8_t { kIdle, kLocking, kQueueing, kFencing, kPausing, kHeld, kReleasing, kOver };

  // `mode`: LOCK's words for the mode, as {"SHARED"} or {"LIMIT", "3"}. `random(n)` returns a random number
  // below n; it must be unpredictable, because owners are made from it, too.
  Redlock(const RedlockConfig& config, std::string key, std::vector<std::string> mode,
          std::function<uint64_t(uint64_t)> random);

  // Begins to acquire; call it once. `clock_us` is the wall clock in us, the source of the hints for
  // tokens: a wrong hint costs a round trip, never safety. `now` is everywhere from a monotonic clock that
  // also runs while the machine is suspended.
  void acquire(TimeMs now, uint64_t clock_us);
  // Begins a renewal; only in state kHeld. The hold stays until its validity ends, whatever the outcome. If
  // the new TTL ends sooner, the shorter validity counts at once, because a server may have it already. An
  // unfinished renewal is forgotten. `heal`: servers that are without the hold get LOCK; otherwise they are
  // only counted.
  void renew(TimeMs now, DurationMs ttl, bool heal = true);
  // Forgets an unfinished renewal: the machine sends nothing more until release().
  void stop_renewing();
  // Releases the hold, or cancels the acquisition (the state is then kOver at once, with kCancelled).
  // UNLOCK goes to every server, also to those whose reply was lost. `at_least` counts from the moment when
  // the quorum of grants was complete. If it is not over, a RENEW goes to every server instead of UNLOCK:
  // the hold expires at the end of that time. If no quorum confirms the RENEW, no UNLOCK follows: the hold
  // expires with its last TTL.
  void release(TimeMs now, DurationMs at_least = {0});

  // Handles a reply; ignores unknown ids. A grant for a cancelled or failed attempt is released, also in
  // state kOver.
  void on_reply(uint64_t id, const Reply& reply, TimeMs now, uint64_t clock_us);
  // The key was released on a server that refused it: shortens the pause before the next attempt.
  void on_freed(TimeMs now, uint64_t clock_us);
  // Handles all deadlines up to `now`.
  void on_time(TimeMs now, uint64_t clock_us);
  // Returns when on_time() is needed; nullopt if there is no deadline.
  std::optional<TimeMs> next_deadline() const;

  // Returns the requests to send now, each once. In state kOver these are the UNLOCKs.
  std::vector<Send> take_sends() { return std::exchange(sends_, {}); }
  // Returns the ids of sends with `waits` whose connections must be closed now, with or without an answer;
  // each id once.
  std::vector<uint64_t> take_ends() { return std::exchange(ends_, {}); }

  State state() const { return static_cast<State>(phase_.index()); }
  // Whether the state is kOver and no LOCK is unanswered whose grant would need a release.
  bool settled() const {
    return state() == State::kOver && requests_.empty() && sends_.empty() && ends_.empty();
  }
  // Returns how many attempts have begun; a wait in a server's queue belongs to its attempt.
  size_t attempts() const { return attempts_; }
  // Returns the result of the acquisition; after the release or loss, the result of that. The reports are
  // in the order of the servers; their `server` is empty.
  const Status& result() const { return result_; }
  // Returns the result of the last complete renewal; null before the first and during a renewal. A success
  // becomes kExpired if later answers show that too many servers are without the hold. Only in state kHeld.
  const Status* renewal() const;
  // The owner of the present attempt, wait or hold, in kPausing of the last one; else empty.
  const std::string& owner() const;
  // In state kHeld:
  uint64_t token() const { return std::get<redlock::Held>(phase_).token; }
  // Returns until when the lock is certainly held, drift subtracted. The hold is lost when `now` reaches
  // it.
  TimeMs valid_until() const { return std::get<redlock::Held>(phase_).valid_until; }

  // Asserts the invariants of the state machine.
  void check_invariants() const;

 private:
  using Vote = redlock::Vote;
  using Attempt = redlock::Attempt;
  using Round = redlock::Round;
  using Locking = redlock::Locking;
  using Queueing = redlock::Queueing;
  using Fencing = redlock::Fencing;
  using Pausing = redlock::Pausing;
  using Held = redlock::Held;
  using Releasing = redlock::Releasing;
  using QueuedWait = redlock::QueuedWait;

  // kHeal: the LOCK of a renewal. The verbs from kFence on are sent in rounds.
  enum class Verb : uint8_t { kLock, kHeal, kWait, kFence, kRenew, kUnlock };

  struct Request {
    uint64_t id = 0;
    Verb verb = Verb::kLock;
    size_t server = 0;
    std::string owner;         // the owner of the hold that a LOCK may have made
    TimeMs deadline = kNever;  // the request counts as lost from then on
    bool hinted = false;       // the LOCK has a TOKEN
    DurationMs ttl{0};         // the TTL in the LOCK
    bool makes_hold() const { return verb == Verb::kLock || verb == Verb::kHeal; }
  };

  // The phases, in redlock.cc: what happens when something was answered, or time has passed.
  void run(Locking& locking, TimeMs now);
  void run(Fencing& fencing, TimeMs now);
  void run(const Pausing& pausing, TimeMs now);
  void run(Held& held, TimeMs now);
  void run(const Releasing& releasing, TimeMs now);
  void run_phase(TimeMs now);

  void begin_attempt(const std::string& owner, std::optional<QueuedWait> wait, TimeMs now);
  void begin_queueing(TimeMs now);
  void begin_fencing(Attempt attempt, uint64_t token, TimeMs now);
  void pause(const std::string& owner, TimeMs now);
  void hold(Attempt attempt, uint64_t token, TimeMs now);
  void fail(const Attempt& failed, TimeMs now);
  void lose();
  void finish(Outcome outcome);
  void finish_wait();
  void end_wait();

  DurationMs next_pause();
  Outcome why_failed(const Attempt& attempt, TimeMs now) const;
  bool is_deadlocked(const Attempt& attempt) const;
  bool is_permanently_refused(const Attempt& attempt) const;
  size_t spare() const { return config_.servers - config_.quorum; }  // servers that may fail
  void do_due(TimeMs now);
  bool time_out_one(TimeMs now);

  // Renewals, in redlock_renewal.cc.
  void judge(Held& held);
  void end_renewal(Held& held, Outcome outcome);
  void heal(Held& held, TimeMs now);
  void ask_heal(Held& held, size_t server, bool hinted, TimeMs now);
  size_t breach() const;
  void answer_renew(const Request& request, const Reply& reply);
  void answer_heal(const Request& request, const Reply& reply, TimeMs now);
  bool may_be_shortened(const Held& held, size_t server) const;

  // Requests and answers, in redlock_requests.cc.
  Request& ask(Verb verb, size_t server, const std::string& owner, std::vector<std::string> argv,
               TimeMs deadline);
  void ask_lock(Attempt& attempt, size_t server, bool hinted, TimeMs now);
  void ask_fence(Fencing& fencing, size_t server, TimeMs now);
  Round begin_round(Verb verb, const std::string& owner, const std::vector<std::string>& argv, TimeMs now);
  void unlock(size_t server, const std::string& owner);
  void release_attempt(const Attempt& attempt);
  void forget_rounds();
  void forget_deadlines();
  void answer(const Request& request, const Reply& reply, TimeMs now);
  void answer_lock(const Request& request, const Reply& reply, TimeMs now);
  void answer_wait(const Request& request, const Reply& reply, TimeMs now);
  void answer_fence(const Request& request, const Reply& reply);
  Vote note(const Request& request, const Reply& reply);
  // The attempt of the present phase; null if it has none.
  Attempt* present_attempt();
  const Attempt* present_attempt() const;
  bool keeps_hold_of(const std::string& owner) const;
  bool acquiring() const { return state() == State::kLocking || state() == State::kFencing; }
  std::string fresh_owner();
  int64_t some_of(DurationMs most) const;
  uint64_t hint() const;
  TimeMs validity(TimeMs from, DurationMs ttl) const { return end_of_validity(from, ttl, config_.drift); }

  RedlockConfig config_;
  std::string key_;
  std::vector<std::string> mode_;
  std::function<uint64_t(uint64_t)> random_;
  redlock::Phase phase_;
  std::vector<ServerReport> reports_;  // the last answer of each server
  Status result_;
  uint64_t seen_ = 0;      // the largest token seen
  uint64_t clock_us_ = 0;  // the last value given by the driver
  TimeMs wait_until_ = kNever;
  size_t attempts_ = 0;
  double pause_limit_ms_ = 0;  // upper limit of the next pause, with backoff
  std::vector<Request> requests_;
  uint64_t last_id_ = 0;
  std::vector<Send> sends_;
  std::vector<uint64_t> ends_;
};

}  // namespace holdfast::client
