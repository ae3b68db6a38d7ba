// One lock on several servers (Redlock with fencing tokens), as a pure state machine: replies and time go
// in, requests come out. It owns no socket, clock or thread. Its driver sends the requests, passes on the
// replies, and calls on_time() at next_deadline(). With one server the lock is that server's lock.
//
// An attempt sends LOCK to all servers of the key, with an owner of its own. If a quorum grants with one
// token, that is the lock's token. Otherwise FENCE raises the other grants to the largest token, and a
// quorum must confirm it. A failed attempt is released on every server.
//
// A wait uses the queue of one server, the first server of the key that answers. With `hands_over` the next
// waiter then waits on all servers: see redlock_next.cc. The rest of this text is about the wait without it
// (older servers, Redis, shared and counted locks). A LOCK with WAIT and
// SESSION waits there, on a connection of its own. After its grant the other servers get LOCK, too, and a
// LOCK without SESSION takes the grant over. So a waiter that vanishes leaves no hold, and the TTL of the
// hold counts from that last LOCK. All waiters are in one queue, and one of them at a time asks the other
// servers. The queue gives only fairness and speed: a waiter also asks the other servers at intervals,
// because a quorum of those is enough. If no queue is available, attempts follow after random pauses, or
// sooner after on_freed().
//
// Why no token is granted twice, and tokens grow: a server acknowledges a token t (by its grant or by a
// FENCE reply equal to t) only while its counter is at least t and the owner's grant there is no larger
// than t. Two quorums share a server, and holds on one server do not overlap. So the later of the two
// acknowledgements there is for a grant after the earlier one: its token is at least counter + 1.
//
// A renewal is a round of its own: redlock_renewal.cc has its rules, and why they exclude other holders.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  bool queues = true;       // false: a wait consists of attempts only
  bool hands_over = false;  // see use_hand_over()
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
  // The request goes over a connection that all quiet requests of the client to the server share. A quiet
  // LOCK may wait in the server's queue, and may get kNext before its answer.
  bool quiet = false;
};

// The text of the report for a server that the attempt did not ask.
inline constexpr const char* kNotAsked = "not asked";
// And of one that was asked, and need not be waited for.
inline constexpr const char* kNoAnswerYet = "no answer yet";

// The answer to a Send. Every Send gets exactly one reply besides kNext, unless take_ends() named it.
struct Reply {
  enum class Kind : uint8_t {
    kGrant,    // [owner, token]; `number` is the token, `text` the owner
    kNull,     // not granted
    kInteger,  // `number`
    kText,     // `text`: a status as OK, or a bulk
    kError,    // `text`, with its code
    kLost,     // no answer will come, because the connection broke; `text` has the cause
    kNext,     // a quiet LOCK is near the head of its queue, and waits on; `number`: its likely token
  };
  Kind kind = Kind::kLost;
  int64_t number = 0;
  std::string text;
  ServerError error = ServerError::kNone;  // of kError; `text` is for people
};

class Redlock {
 public:
  enum class State : uint8_t {
    kIdle,
    kLocking,   // LOCK is under way, or is about to be repeated
    kQueueing,  // the request waits in a server's queue
    kFencing,   // FENCE is under way
    kPausing,   // between two attempts
    kHeld,
    kReleasing,  // UNLOCK is under way, after release()
    kOver,       // result() has the outcome: not acquired, released, or lost
  };

  // `mode`: LOCK's words for the mode, as {"SHARED"} or {"LIMIT", "3"}. `random(n)` returns a random number
  // below n; it must be unpredictable, because owners are made from it, too.
  Redlock(const RedlockConfig& config, std::string key, std::vector<std::string> mode,
          std::function<uint64_t(uint64_t)> random);

  // The next waiter waits on all servers; call it before acquire(). The servers must know LOCK ... QUIET,
  // the lock must be exclusive, and there must be several servers.
  void use_hand_over() { config_.hands_over = true; }
  // Begins to acquire; call it once. `clock_us` is the wall clock in us, the source of the hints for
  // tokens: a wrong hint costs a round trip, never safety. `now` is everywhere from a monotonic clock that
  // also runs while the machine is suspended. `contended`: other clients probably wait. Then a lock that
  // may wait joins the queue at once, because attempts would disturb those waiters.
  void acquire(TimeMs now, uint64_t clock_us, bool contended = false);
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
  // Returns the ids of sends with `waits` whose connections must be closed now, with or without an answer,
  // and of quiet sends whose answer is not wanted any more; each id once.
  std::vector<uint64_t> take_ends() { return std::exchange(ends_, {}); }

  State state() const { return state_; }
  // Whether the state is kOver and no LOCK is unanswered whose grant would need a release.
  bool settled() const {
    return state_ == State::kOver && requests_.empty() && sends_.empty() && ends_.empty();
  }
  // Whether the lock waits on all servers, as one of the next ones.
  bool is_next() const { return next_; }
  // Returns how many attempts have begun; a wait in a server's queue belongs to its attempt.
  size_t attempts() const { return attempts_; }
  // Returns the result of the acquisition; after the release or loss, the result of that. The reports are
  // in the order of the servers; their `server` is empty.
  const Status& result() const { return result_; }
  // Returns the result of the last complete renewal; nullopt before the first and during a renewal. A
  // success becomes kExpired if later answers show that too many servers are without the hold.
  const std::optional<Status>& renewal() const { return renewal_; }
  // In state kHeld:
  const std::string& owner() const { return owner_; }
  uint64_t token() const { return token_; }
  // Returns until when the lock is certainly held, drift subtracted. The hold is lost when `now` reaches
  // it.
  TimeMs valid_until() const { return valid_until_; }

  // Asserts the invariants of the state machine.
  void check_invariants() const;

 private:
  // kHeal: the LOCK of a renewal. kJoin: a LOCK of the next waiter. kProbe: PING behind a kJoin. The verbs
  // from kFence on are sent in rounds.
  enum class Verb : uint8_t { kLock, kHeal, kWait, kJoin, kProbe, kFence, kRenew, kUnlock };
  // The answer of a server to a request: kNo is a plain no, kRefused an error, kLost no answer.
  enum class Vote : uint8_t { kNone, kPending, kYes, kNo, kRefused, kLost };

  struct Request {
    uint64_t id = 0;
    Verb verb = Verb::kLock;
    size_t server = 0;
    std::string owner;         // the owner of the hold that a LOCK may have made
    TimeMs deadline = kNever;  // the request counts as lost from then on
    bool hinted = false;       // the LOCK has a TOKEN
    DurationMs ttl{0};         // the TTL in the LOCK
    TimeMs sent{};
    bool quiet = false;
    bool behind = false;     // the kJoin is not granted where the key is free
    bool cancelled = false;  // a quiet LOCK by UNLOCK ... WAITS, or a LOCK of end_turn()
    bool makes_hold() const { return verb == Verb::kLock || verb == Verb::kHeal || verb == Verb::kJoin; }
  };
  // The known state of a server.
  struct ServerState {
    Vote lock = Vote::kNone;   // answer to this attempt's LOCK; not kYes after FENCE found no hold
    Vote round = Vote::kNone;  // answer in the present round of FENCE, RENEW or UNLOCK
    bool without = false;      // the server answered the present round of RENEW that it has no hold
    bool to_heal = false;      // the server gets LOCK as soon as the rules allow it
    bool free = false;         // it answered the kJoin that it has no holder
    bool left = false;         // it granted without a quorum: this owner sends it no LOCK again
    uint64_t token = 0;        // the largest token that it is known to have given this hold
    TimeMs waits_since{};      // it had not granted the kJoin when a request sent at this time arrived
    ServerReport report;       // the last answer
  };

  void begin_attempt(const std::string& owner, TimeMs now, std::optional<size_t> without = std::nullopt);
  void begin_queueing(size_t server, TimeMs now);
  void await_turn(TimeMs now);
  void try_other_servers(TimeMs now);
  void repeat_locks(TimeMs now);
  std::optional<size_t> queue_server() const;
  bool awaits_queue_server(TimeMs now);
  bool must_join_queue() const;
  void judge_locks(TimeMs now);
  void miss(TimeMs now);
  void begin_fencing(uint64_t token, TimeMs now);
  void judge_fencing(TimeMs now);
  void hold(TimeMs now);
  void fail_attempt(TimeMs now);
  void pause(TimeMs now);
  DurationMs next_pause();
  Outcome why_failed(TimeMs now) const;
  bool deadlocked() const;
  void release_attempt(TimeMs now);
  void lose(TimeMs now);
  void finish(Outcome outcome, TimeMs now);
  void finish_wait(TimeMs now);
  void judge_renewal(TimeMs now);
  void end_renewal(Outcome outcome);
  void heal(TimeMs now);
  size_t breach() const;
  size_t count_without() const;
  Outcome why_not_renewed() const;
  void judge_release(TimeMs now);
  std::optional<Outcome> round_outcome() const;
  static bool is_of_far_hint(const Reply& reply);
  static bool is_of_old_server(const Reply& reply);
  static bool is_free(const Reply& reply);

  void answer(const Request& request, const Reply& reply, TimeMs now);
  bool keeps_grant(const Request& request, const Reply& reply) const;
  void answer_lock(const Request& request, const Reply& reply, TimeMs now);
  void answer_wait(const Request& request, const Reply& reply, TimeMs now);
  void answer_next(Request& request, const Reply& reply, TimeMs now);
  void ask_join(size_t server, bool hinted, bool behind, TimeMs now);
  void answer_join(const Request& request, const Reply& reply, TimeMs now);
  void answer_probe(const Request& request, const Reply& reply);
  void refresh_joins(TimeMs now);
  void judge_joins(TimeMs now);
  void give_up(TimeMs now);
  DurationMs join_age() const { return {config_.ttl.count / 8}; }
  bool joins(size_t server) const;
  DurationMs join_pause() const;
  void take_free(TimeMs now);
  void begin_turn(TimeMs now);
  bool may_wait_on() const;
  void end_turn(TimeMs now);
  void leave(size_t server, TimeMs now);
  void release_join(Verb verb, size_t server, std::vector<std::string> argv, TimeMs deadline);
  void queue_the_old_way(TimeMs now);
  void leave_queue(TimeMs now);
  void forget_quiet(const Request& request);
  void cancel_join(Request& request, TimeMs now);
  void cancel_joins(TimeMs now);
  void record_grant(size_t index, const Reply& reply, TimeMs now);
  void answer_fence(const Request& request, const Reply& reply);
  void answer_renew(const Request& request, const Reply& reply);
  void answer_heal(const Request& request, const Reply& reply, TimeMs now);
  bool may_be_shortened(size_t server) const;
  bool may_be_session(size_t server) const;
  Vote note(const Request& request, const Reply& reply);
  void judge(TimeMs now);
  void do_due(TimeMs now);
  bool time_out_one(TimeMs now);

  void begin_round(Verb verb, const std::vector<std::string>& argv, TimeMs now);
  Request& ask(Verb verb, size_t server, std::vector<std::string> argv, TimeMs deadline,
               bool quiet = false);
  void ask_lock(size_t server, bool hinted, TimeMs now);
  void ask_heal(size_t server, bool hinted, TimeMs now);
  void unlock(size_t server, const std::string& owner);
  void unlock_with_waits(size_t server, const std::string& owner, bool quiet);
  void end_wait(TimeMs now);
  void forget_rounds();
  bool acquiring() const { return state_ == State::kLocking || state_ == State::kFencing; }
  size_t count(Vote ServerState::*which, Vote vote) const;
  Status result_for(Outcome outcome) const;
  std::string fresh_owner();
  int64_t some_of(DurationMs most) const;
  int64_t left_of_wait(TimeMs now) const;
  uint64_t hint() const;
  TimeMs validity(TimeMs from, DurationMs ttl) const;

  RedlockConfig config_;
  std::string key_;
  std::vector<std::string> mode_;
  std::function<uint64_t(uint64_t)> random_;

  State state_ = State::kIdle;
  Status result_;
  std::optional<Status> renewal_;
  std::string owner_;
  uint64_t token_ = 0;
  bool renewing_ = false;
  bool keeps_ = false;             // release() sent RENEW: no UNLOCK follows
  bool heals_ = false;             // the present round of RENEW heals servers
  DurationMs renew_ttl_{0};        // the TTL of that round
  uint64_t round_from_ = 0;        // the id of the first request of the present round
  uint64_t fence_ = 0;             // the token that the present round of FENCE must confirm
  uint64_t seen_ = 0;              // the largest token seen
  uint64_t clock_us_ = 0;          // the last value given by the driver
  TimeMs held_since_ = kNever;     // start of `at_least` of release()
  TimeMs valid_until_ = kNever;    // end of validity of the hold, or of a hold that the attempt would get
  TimeMs renewed_until_ = kNever;  // end of validity if the present renewal succeeds
  TimeMs wait_until_ = kNever;
  TimeMs pause_until_ = kNever;
  bool freed_ = false;  // on_freed() has shortened the present pause
  size_t attempts_ = 0;
  double pause_limit_ms_ = 0;  // upper limit of the next pause, with backoff
  std::vector<ServerState> servers_;
  std::vector<Request> requests_;
  uint64_t last_id_ = 0;
  uint64_t wait_id_ = 0;  // the id of the send that waits or has its SESSION grant; 0: none
  size_t wait_server_ = 0;
  // This server granted the wait, but other servers have a holder.
  std::optional<size_t> contradicted_server_;
  std::string wait_owner_;
  bool leads_ = false;        // the wait was granted: the present attempt uses its owner
  bool quiet_ = false;        // the wait is a quiet one
  bool old_servers_ = false;  // a server does not know quiet waits
  bool next_ = false;         // the turn of the wait is near: it uses the queues of all servers
  uint64_t next_token_ = 0;
  TimeMs give_up_at_ = kNever;  // with next_, after the first grant: the other servers must have granted
  int repeats_ = 0;             // how often the attempt may still repeat LOCK on servers that refused it
  TimeMs repeat_at_ = kNever;
  TimeMs settle_at_ = kNever;  // a failed attempt ends then, even if servers have not answered
  TimeMs look_at_ = kNever;    // in kQueueing: when to ask the other servers
  std::vector<Send> sends_;
  std::vector<uint64_t> ends_;
};

}  // namespace holdfast::client
