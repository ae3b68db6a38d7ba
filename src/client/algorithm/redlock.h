// One lock on several servers (Redlock with fencing tokens), as a pure state machine: replies and time in,
// requests out. Owns no socket, clock or thread; whatever drives it, sends what it asks for, tells it the
// replies, and comes again at next_deadline(). With one server it is that server's lock.
//
// An attempt sends LOCK to all servers of the key, with an owner of its own. Where a quorum granted with
// one token, that is the lock's; otherwise FENCE raises the others to the largest, and a quorum must
// confirm it. An attempt that fails is released on every server.
//
// A wait is a server's, the first of the key's that answers: a LOCK with WAIT and SESSION stands in its
// queue, on a connection of its own. Once granted there the others are asked, too, and the grant is taken
// over by a LOCK without SESSION: a waiter that vanishes leaves no hold behind, and the time of the hold
// counts from that last LOCK. So all who wait stand in one queue, and one of them at a time asks the rest.
// The queue is only about fairness and speed: who waits looks at the other servers now and then, as a
// quorum of those is enough, too. Where no queue can be had, attempts follow after random pauses, or sooner
// where on_freed() says so.
//
// Why a token is never given twice, and grows: a server acknowledges a token t (by its grant or by a FENCE
// reply equal to t) only while its counter is at least t and the owner's grant there is no larger than t.
// Two quorums share a server; holds on one server do not overlap, so the later of the two acknowledgements
// there is for a grant after the earlier one: with a token of at least counter + 1.
//
// A renewal is a round of its own: redlock_renewal.cc has its rules, and why they keep others out.
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

// Pauses that grow, with full jitter: the n-th is a random time from 0 to first * factor^(n-1), at most
// `longest`.
struct GrowingPause {
  DurationMs first{100};
  double factor = 2;
  DurationMs longest{10000};
};

struct RedlockConfig {
  size_t servers = 1;
  size_t quorum = 1;  // for this lock: wquorum, or rquorum for a shared one
  // So many servers without the hold can let in a client that it excludes: then the hold is lost.
  // 0: servers + 1 - quorum.
  size_t breach = 0;
  DurationMs ttl{30000};  // 1 to kMaxTtlMs; so short that drift takes all of it, it never succeeds
  DurationMs server_timeout{1000};  // a server that has not answered by then has refused
  DurationMs min_wait{10};          // between attempts, at random
  DurationMs max_wait{100};
  std::optional<GrowingPause> backoff;  // in place of the two
  // After so many attempts the wait is over, where no queue can be had; 0: no limit.
  size_t max_attempts = 0;
  bool queues = true;  // false: a wait is made of attempts alone
  // For how long attempts begin; nullopt: one attempt; 0: for ever. One that is under way then is finished.
  std::optional<DurationMs> wait;
  double drift = kDrift;
};

// What is to be sent, in this order. `id` names it in on_reply().
struct Send {
  size_t server = 0;
  uint64_t id = 0;
  std::vector<std::string> argv;
  // It may wait in the server's queue: it goes over a connection of its own, which stays open until
  // take_ends() names it, also after the reply. What it got is a SESSION hold, which goes with that
  // connection, and is taken over before.
  bool waits = false;
};

// The text of a report, of a server that the attempt has not asked.
inline constexpr const char* kNotAsked = "not asked";

// What came back. Every send gets exactly one in the end, unless take_ends() named it.
struct Reply {
  enum class Kind : uint8_t {
    kGrant,    // [owner, token]; `number` is the token, `text` the owner
    kNull,     // not granted
    kInteger,  // `number`
    kText,     // `text`: a status as OK, or a bulk
    kError,    // `text`, with its code
    kLost,     // no answer, and none will come: the connection broke; `text` says how
  };
  Kind kind = Kind::kLost;
  int64_t number = 0;
  std::string text;
};

class Redlock {
 public:
  enum class State : uint8_t {
    kIdle,
    kLocking,   // LOCK is under way, or is about to be repeated
    kQueueing,  // waits in a server's queue
    kFencing,   // FENCE is under way
    kPausing,   // between two attempts
    kHeld,
    kReleasing,  // UNLOCK is under way, after release()
    kOver,       // result() has the outcome: not acquired, released, or lost
  };

  // `mode`: LOCK's words for it, as {"SHARED"} or {"LIMIT", "3"}. `random(n)` is a number below n, of which
  // owners are made too.
  Redlock(const RedlockConfig& config, std::string key, std::vector<std::string> mode,
          std::function<uint64_t(uint64_t)> random);

  // Begins to acquire, once. `clock_us` is the wall clock, of which hints for tokens are made: a wrong one
  // costs a round trip, never safety. `now` is of a monotonic clock that runs through suspends, everywhere.
  // `contended`: others are likely to wait, so that a lock that may wait goes to the queue at once: it
  // would get in their way.
  void acquire(TimeMs now, uint64_t clock_us, bool contended = false);
  // Only where kHeld. The hold goes on, whatever the outcome, until its validity ends; but that of a ttl
  // which would end sooner counts at once, as some server may have it. A renewal under way is forgotten.
  // `heal`: servers that turn out to be without the hold get LOCK; otherwise they are only counted.
  void renew(TimeMs now, DurationMs ttl, bool heal = true);
  // Forgets the renewal under way: nothing more is sent until release().
  void stop_renewing();
  // Gives it back, or gives up acquiring (then it is kOver at once, with kCancelled): UNLOCK goes to every
  // server, also where a reply was lost. Before `at_least` is over, which counts from when the quorum of
  // grants was complete, a RENEW goes to every server in its place: the hold expires by itself when that
  // time is over. Where no quorum confirms the RENEW, no UNLOCK follows: the hold ends with its last ttl.
  void release(TimeMs now, DurationMs at_least = {0});

  // Ids that are not known any more are ignored. A grant that comes after its attempt was given up is
  // released, also when all is over.
  void on_reply(uint64_t id, const Reply& reply, TimeMs now, uint64_t clock_us);
  // The key was released on a server that refused: the next attempt need not wait longer.
  void on_freed(TimeMs now, uint64_t clock_us);
  // Does what is due.
  void on_time(TimeMs now, uint64_t clock_us);
  std::optional<TimeMs> next_deadline() const;

  // What is to be sent now; each is given once. Also when it is over: then come the UNLOCKs.
  std::vector<Send> take_sends() { return std::exchange(sends_, {}); }
  // Ids of sends with `waits` whose connections are to be closed now, answered or not; each is given once.
  std::vector<uint64_t> take_ends() { return std::exchange(ends_, {}); }

  State state() const { return state_; }
  // Whether it is over, and no LOCK is unanswered whose grant would have to be released.
  bool settled() const {
    return state_ == State::kOver && requests_.empty() && sends_.empty() && ends_.empty();
  }
  // Of the acquisition; once released or lost, of that. `server` of the reports is empty: they stand in the
  // order of the servers.
  const Result& result() const { return result_; }
  // Of the last renewal that ended; nullopt while one is under way or before the first. One that succeeded
  // becomes kExpired where servers answer later that they are without the hold, and too many are.
  const std::optional<Result>& renewal() const { return renewal_; }
  // While kHeld:
  const std::string& owner() const { return owner_; }
  uint64_t token() const { return token_; }
  // Until when the lock is sure to be held, drift taken off. The hold is lost when `now` reaches it.
  TimeMs valid_until() const { return valid_until_; }

  // Asserts what must always hold.
  void check_invariants() const;

 private:
  // kHeal: the LOCK of a renewal. Rounds begin with kFence.
  enum class Verb : uint8_t { kLock, kHeal, kWait, kFence, kRenew, kUnlock };
  // What a server says to a request: kNo is a plain no, kRefused an error, kLost no answer.
  enum class Vote : uint8_t { kNone, kPending, kYes, kNo, kRefused, kLost };

  struct Request {
    uint64_t id = 0;
    Verb verb = Verb::kLock;
    size_t server = 0;
    std::string owner;         // whose hold a LOCK may have made
    TimeMs deadline = kNever;  // when it counts as lost
    bool hinted = false;       // LOCK had a TOKEN
    DurationMs ttl{0};         // of LOCK
    bool makes_hold() const { return verb == Verb::kLock || verb == Verb::kHeal; }
  };
  // What is known of a server.
  struct Standing {
    Vote lock = Vote::kNone;   // to this attempt's LOCK; not kYes once FENCE has found the hold gone
    Vote round = Vote::kNone;  // to the present round of FENCE, RENEW or UNLOCK
    bool without = false;      // it was without the hold when the present round of RENEW asked it
    bool to_heal = false;      // and gets LOCK as soon as that is allowed
    uint64_t token = 0;        // the largest that it is known to have given this hold
    ServerReport report;       // of the last answer
  };

  void begin_attempt(const std::string& owner, TimeMs now, std::optional<size_t> without = std::nullopt);
  void begin_queueing(size_t server, TimeMs now);
  void await_turn(TimeMs now);
  void look_around(TimeMs now);
  void repeat_locks(TimeMs now);
  std::optional<size_t> queue_server() const;
  bool awaits_queue_server(TimeMs now);
  bool gives_way() const;
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
  void give_back();
  void lose();
  void finish(Outcome outcome);
  void finish_wait();
  void judge_renewal(TimeMs now);
  void end_renewal(Outcome outcome);
  void heal(TimeMs now);
  size_t breach() const;
  size_t count_without() const;
  Outcome why_not_renewed() const;
  void judge_release();
  Outcome why_no_quorum() const;
  std::optional<Outcome> round_outcome() const;
  static bool is_of_far_hint(const Reply& reply);

  void answer(const Request& request, const Reply& reply, TimeMs now);
  void answer_lock(const Request& request, const Reply& reply, TimeMs now);
  void answer_wait(const Request& request, const Reply& reply, TimeMs now);
  void answer_fence(const Request& request, const Reply& reply);
  void answer_renew(const Request& request, const Reply& reply);
  void answer_heal(const Request& request, const Reply& reply, TimeMs now);
  bool may_be_shortened(size_t server) const;
  Vote note(const Request& request, const Reply& reply);
  void judge(TimeMs now);
  void do_due(TimeMs now);
  bool lose_one(TimeMs now);

  void begin_round(Verb verb, const std::vector<std::string>& argv, TimeMs now);
  void ask(Verb verb, size_t server, std::vector<std::string> argv, TimeMs deadline);
  void ask_lock(size_t server, bool hinted, TimeMs now);
  void ask_heal(size_t server, bool hinted, TimeMs now);
  void unlock(size_t server, const std::string& owner);
  void end_wait();
  void forget_rounds();
  bool acquiring() const { return state_ == State::kLocking || state_ == State::kFencing; }
  size_t count(Vote Standing::*which, Vote vote) const;
  Result told(Outcome outcome) const;
  std::string fresh_owner();
  int64_t some_of(DurationMs most) const;
  uint64_t hint() const;
  TimeMs validity(TimeMs from, DurationMs ttl) const;

  RedlockConfig config_;
  std::string key_;
  std::vector<std::string> mode_;
  std::function<uint64_t(uint64_t)> random_;

  State state_ = State::kIdle;
  Result result_;
  std::optional<Result> renewal_;
  std::string owner_;
  uint64_t token_ = 0;
  bool renewing_ = false;
  bool keeps_ = false;             // release() sent RENEW: no UNLOCK follows
  bool heals_ = false;             // the present round of RENEW
  DurationMs renew_ttl_{0};        // of that round
  uint64_t round_from_ = 0;        // its first request
  uint64_t fence_ = 0;             // what the present round of FENCE is to confirm
  uint64_t seen_ = 0;              // the largest token
  uint64_t clock_us_ = 0;          // as last told
  TimeMs held_since_ = kNever;     // for `at_least` of release()
  TimeMs valid_until_ = kNever;    // of the hold, or of what the attempt would get
  TimeMs renewed_until_ = kNever;  // what the present renewal would get
  TimeMs wait_until_ = kNever;
  TimeMs pause_until_ = kNever;
  bool freed_ = false;  // on_freed() has shortened the present pause
  size_t attempts_ = 0;
  double pause_limit_ms_ = 0;  // of the next pause, with backoff
  std::vector<Standing> servers_;
  std::vector<Request> requests_;
  uint64_t last_id_ = 0;
  uint64_t wait_id_ = 0;  // of the send that waits, or what it got; 0: none
  size_t wait_server_ = 0;
  std::optional<size_t> led_in_vain_;  // the turn there came, but others hold the lock on the other servers
  std::string wait_owner_;
  bool leads_ = false;  // what waited was granted: the attempt is its
  int repeats_ = 0;     // of LOCKs where they were refused, that the attempt may still make
  TimeMs repeat_at_ = kNever;
  TimeMs settle_at_ = kNever;  // an attempt that has failed ends, whoever has not answered
  TimeMs look_at_ = kNever;    // while kQueueing
  std::vector<Send> sends_;
  std::vector<uint64_t> ends_;
};

}  // namespace holdfast::client
