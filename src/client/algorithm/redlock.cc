// The decisions of Redlock, which follow from all answers and from time. redlock_requests.cc has the
// requests and the meaning of each answer.
#include "client/algorithm/redlock.h"

#include <algorithm>
#include <cassert>

#include "client/base/login.h"

namespace holdfast::client {

namespace {

// Whether a retry cannot help, for example because the server knows no LOCK or requires a password. A
// server that is only busy or recovering answers with another code.
bool is_permanent(const std::string& error) {
  if (error.find("too many waiters") != std::string::npos) return false;
  for (const char* code : {"ERR ", "NOAUTH", "NOPERM", "WRONGPASS", "WRONGTYPE", "UNBLOCKED"}) {
    if (error.starts_with(code)) return true;
  }
  return false;
}

const char* words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "";
    case Outcome::kBusy:
      return "other owners hold the lock; wait for it, or retry later";
    case Outcome::kTimeout:
      return "other owners held the lock until the end of the wait";
    case Outcome::kExpired:
      return "the hold expired or was ended by force; another owner may hold the lock now";
    case Outcome::kUnreachable:
      return "too few servers answered; see each server's result";
    case Outcome::kDeadlock:
      return "deadlock detected: the owner would wait for itself; release its other locks and retry";
    case Outcome::kRefused:
      return "servers answered with errors; see each server's error";
    case Outcome::kCancelled:
      return "the caller cancelled the request";
    case Outcome::kNotOwner:
      return "another owner holds the lock";
    case Outcome::kLeaseConfirmed:
    case Outcome::kLeaseCancelled:
      break;  // of leases only
  }
  return "";
}

}  // namespace

Redlock::Redlock(const RedlockConfig& config, std::string key, std::vector<std::string> mode,
                 std::function<uint64_t(uint64_t)> random)
    : config_(config), key_(std::move(key)), mode_(std::move(mode)), random_(std::move(random)) {
  assert(config_.servers >= 1 && config_.quorum >= 1 && config_.quorum <= config_.servers);
  assert(config_.ttl.count >= 1 && config_.ttl.count <= kMaxTtlMs);
  assert(config_.min_wait <= config_.max_wait && config_.min_wait.count >= 0);
  assert(config_.server_timeout.count >= 1 && config_.drift >= 0 && config_.drift < 1);
  assert(!config_.wait || config_.wait->count >= 0);
  if (!config_.backoff) return;
  assert(config_.backoff->first.count >= 1 && config_.backoff->first <= config_.backoff->longest);
  assert(config_.backoff->factor >= 1);
  pause_limit_ms_ = static_cast<double>(config_.backoff->first.count);
}

size_t Redlock::count(Vote ServerState::*which, Vote vote) const {
  return static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                           [&](const ServerState& s) { return s.*which == vote; }));
}

void Redlock::judge(TimeMs now) {
  if (acquiring() && (deadlocked() || is_due(valid_until_, now))) return fail_attempt(now);
  if (next_ && (state_ == State::kQueueing || state_ == State::kLocking)) take_free(now);
  if (state_ == State::kQueueing && next_) judge_joins(now);
  if (state_ == State::kLocking) judge_locks(now);
  if (state_ == State::kFencing) judge_fencing(now);
  if (state_ == State::kHeld && is_due(valid_until_, now)) return lose(now);
  if (state_ == State::kHeld) judge_renewal(now);
  if (state_ == State::kHeld && is_due(valid_until_, now)) return lose(now);
  if (state_ == State::kReleasing) judge_release(now);
}

void Redlock::judge_locks(TimeMs now) {
  size_t same = 0;
  uint64_t largest = 0;
  for (const ServerState& s : servers_) {
    if (s.lock != Vote::kYes) continue;
    const auto equal =
        static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(), [&](const auto& o) {
          return o.lock == Vote::kYes && o.token == s.token;
        }));
    same = std::max(same, equal);
    largest = std::max(largest, s.token);
    if (equal < config_.quorum) continue;
    if (must_join_queue()) return fail_attempt(now);
    token_ = s.token;
    return hold(now);
  }
  if (repeat_at_ != kNever) return;
  const size_t yes = count(&ServerState::lock, Vote::kYes);
  const size_t pending = count(&ServerState::lock, Vote::kPending);
  if (yes + pending < config_.quorum) return miss(now);
  settle_at_ = kNever;  // after a miss, a late answer can make a quorum possible again
  // A pending grant of a next waiter may need the release by another client, which can take long.
  const size_t may_come = next_ ? 0 : pending;
  if (yes >= config_.quorum && same + may_come < config_.quorum) begin_fencing(largest, now);
}

// This attempt can no longer get a quorum: repeats its LOCKs later, or lets the attempt fail.
void Redlock::miss(TimeMs now) {
  if (leads_ && repeats_ > 0 && count(&ServerState::lock, Vote::kNo) > 0 && config_.servers > 1) {
    repeat_at_ = saturating_add(now, {1 + some_of(config_.min_wait)});
  } else if (may_wait_on()) {
    end_turn(now);
  } else if (!awaits_queue_server(now)) {
    fail_attempt(now);
  }
}

void Redlock::judge_fencing(TimeMs now) {
  const size_t yes = count(&ServerState::round, Vote::kYes);
  if (yes >= config_.quorum) {
    token_ = fence_;
    return hold(now);
  }
  const size_t unasked = count(&ServerState::lock, Vote::kPending);
  if (yes + count(&ServerState::round, Vote::kPending) + unasked >= config_.quorum) return;
  if (count(&ServerState::lock, Vote::kYes) + unasked < config_.quorum) return fail_attempt(now);
  uint64_t largest = 0;
  for (const ServerState& s : servers_) {
    if (s.lock == Vote::kYes) largest = std::max(largest, s.token);
  }
  assert(largest > fence_);
  begin_fencing(largest, now);
}

Status Redlock::result_for(Outcome outcome) const {
  Status result{outcome, words_of(outcome), {}};
  for (const ServerState& s : servers_) result.servers.push_back(s.report);
  for (const ServerReport& report : result.servers) {
    if (outcome == Outcome::kRefused && report.outcome == outcome)
      result.message = with_advice(report.text);
  }
  return result;
}

void Redlock::hold(TimeMs now) {
  state_ = State::kHeld;
  held_since_ = now;
  end_wait(now);
  forget_rounds();
  result_ = result_for(Outcome::kOk);
}

void Redlock::finish(Outcome outcome, TimeMs now) {
  state_ = State::kOver;
  end_wait(now);
  forget_rounds();
  cancel_joins(now);
  for (Request& r : requests_) {
    if (!r.quiet) r.deadline = kNever;
  }
  result_ = result_for(outcome);
}

Outcome Redlock::why_failed(TimeMs now) const {
  const size_t spare = config_.servers - config_.quorum;  // servers that may fail
  const bool late = is_due(valid_until_, now);
  const size_t lost =
      count(&ServerState::lock, Vote::kLost) + (late ? count(&ServerState::lock, Vote::kPending) : 0);
  const size_t refused = count(&ServerState::lock, Vote::kRefused);
  const size_t busy = count(&ServerState::lock, Vote::kNo);
  if (lost > spare) return Outcome::kUnreachable;
  if (refused > 0 && busy == 0 && refused + lost > spare) return Outcome::kRefused;
  return late && busy <= spare ? Outcome::kExpired : Outcome::kBusy;
}

// Returns the server whose queue to use; null if there is none. All waiters must choose the same server, so
// it is the first available one. Exception: this server granted the wait without success, while another
// server has a holder. Then the holder has no hold on the first server. It cannot heal that server as long
// as the waiters there get the lock one after the other. The wait moves to the server that has the holder.
std::optional<size_t> Redlock::queue_server() const {
  const auto there = std::find_if(servers_.begin(), servers_.end(), [this](const ServerState& s) {
    return s.lock == Vote::kNo || (s.lock == Vote::kYes && config_.servers > 1);
  });
  if (there == servers_.end()) return std::nullopt;
  const size_t first = static_cast<size_t>(there - servers_.begin());
  if (first != contradicted_server_) return first;
  const auto held =
      std::find_if(there + 1, servers_.end(), [](const ServerState& s) { return s.lock == Vote::kNo; });
  return held == servers_.end() ? first : static_cast<size_t>(held - servers_.begin());
}

// Returns whether to wait for more answers before choosing the queue server. All waiters should choose the
// same server, so a server that has not answered yet gets min_wait more time.
bool Redlock::awaits_queue_server(TimeMs now) {
  const auto there = std::find_if(servers_.begin(), servers_.end(), [](const ServerState& s) {
    return s.lock != Vote::kLost && s.lock != Vote::kRefused;
  });
  const bool unclear = there != servers_.end() && there->lock == Vote::kPending;
  if (!unclear || !config_.wait || !config_.queues || wait_id_ != 0 || why_failed(now) != Outcome::kBusy)
    return false;
  if (settle_at_ == kNever) settle_at_ = saturating_add(now, config_.min_wait);
  return !is_due(settle_at_, now);
}

// Returns whether a new client that may wait must join the queue, so that it does not overtake its waiters.
bool Redlock::must_join_queue() const {
  return config_.wait && config_.queues && config_.servers > 1 && wait_id_ == 0 &&
         servers_[0].lock == Vote::kNo;
}

bool Redlock::deadlocked() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const ServerState& s) {
    return s.lock == Vote::kRefused && s.report.outcome == Outcome::kDeadlock;
  });
}

// Ends a failed attempt or a failed wait in a queue, and chooses the next step.
void Redlock::fail_attempt(TimeMs now) {
  const auto permanent =
      static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(), [](const auto& s) {
        return s.lock == Vote::kRefused && is_permanent(s.report.text);
      }));
  const Outcome why = why_failed(now);
  const bool tried_others = wait_id_ != 0 && !leads_ && !next_;
  const bool led = leads_ || next_;
  if (leads_ && why == Outcome::kBusy && (!next_ || servers_[wait_server_].lock == Vote::kYes))
    contradicted_server_ = wait_server_;
  if (acquiring() || next_) release_attempt(now);
  if (deadlocked()) return finish(Outcome::kDeadlock, now);
  if (permanent > config_.servers - config_.quorum) return finish(Outcome::kRefused, now);
  result_ = result_for(why);
  if (!config_.wait) return finish(why, now);
  if (is_due(wait_until_, now)) return finish_wait(now);
  if (tried_others) return await_turn(now);
  end_wait(now);
  const std::optional<size_t> queue = queue_server();
  const bool queues = config_.queues && queue && why == Outcome::kBusy && (!led || config_.servers == 1);
  if (!queues && attempts_ == config_.max_attempts) return finish_wait(now);
  return queues ? begin_queueing(*queue, now) : pause(now);
}

void Redlock::pause(TimeMs now) {
  state_ = State::kPausing;
  freed_ = false;
  pause_until_ = saturating_add(now, next_pause());
}

DurationMs Redlock::next_pause() {
  if (!config_.backoff) {
    const DurationMs more{config_.max_wait.count - config_.min_wait.count};
    return {config_.min_wait.count + some_of(more)};
  }
  const auto longest = static_cast<double>(config_.backoff->longest.count);
  const double limit_ms = std::min(pause_limit_ms_, longest);
  pause_limit_ms_ = std::min(limit_ms * config_.backoff->factor, longest);
  return {some_of({static_cast<int64_t>(limit_ms)})};
}

// Ends the wait with the outcome of the last attempt, which is in result_.
void Redlock::finish_wait(TimeMs now) {
  const Outcome last = result_.outcome;
  const bool busy = last == Outcome::kBusy || last == Outcome::kExpired;
  finish(busy ? Outcome::kTimeout : last, now);
  if (busy && attempts_ == config_.max_attempts)
    result_.message = "other owners held the lock at each of " + std::to_string(attempts_) + " attempts";
}

void Redlock::lose(TimeMs now) {
  release_attempt(now);
  finish(Outcome::kExpired, now);
}

// Returns the outcome of the present round of release(); nullopt while it is open. The lock was lost if so
// many servers answer that they are without the hold that no quorum can have it. A server that rejects the
// request, for example with LOADING, may have the hold.
std::optional<Outcome> Redlock::round_outcome() const {
  const size_t spare = config_.servers - config_.quorum;
  const size_t yes = count(&ServerState::round, Vote::kYes);
  const size_t no = count(&ServerState::round, Vote::kNo);
  const size_t pending = count(&ServerState::round, Vote::kPending);
  if (yes >= config_.quorum) return Outcome::kOk;
  if (no > spare) return Outcome::kExpired;
  if (yes + pending >= config_.quorum || no + pending > spare) return std::nullopt;
  return count(&ServerState::round, Vote::kLost) > 0 ? Outcome::kUnreachable : Outcome::kRefused;
}

void Redlock::judge_release(TimeMs now) {
  if (const std::optional<Outcome> outcome = round_outcome()) finish(*outcome, now);
}

// --- the public functions ---

void Redlock::acquire(TimeMs now, uint64_t clock_us, bool contended) {
  assert(state_ == State::kIdle);
  clock_us_ = clock_us;
  wait_until_ = now;
  if (config_.wait) wait_until_ = config_.wait->count == 0 ? kNever : saturating_add(now, *config_.wait);
  servers_.assign(config_.servers, {});
  attempts_ = 1;
  if (!is_due(validity(now, config_.ttl), now)) {
    if (contended && config_.wait && config_.queues && config_.servers > 1) return begin_queueing(0, now);
    return begin_attempt(fresh_owner(), now);
  }
  finish(Outcome::kRefused, now);
  result_.message = "the ttl is not longer than the margin for the drift of clocks; choose a longer ttl";
}

void Redlock::release(TimeMs now, DurationMs at_least) {
  if (state_ == State::kOver || state_ == State::kReleasing) return;
  if (state_ == State::kHeld) {
    if (is_due(valid_until_, now)) return lose(now);
    state_ = State::kReleasing;
    renewing_ = false;
    const TimeMs kept_until = saturating_add(held_since_, at_least);
    if (is_due(kept_until, now)) return begin_round(Verb::kUnlock, {"UNLOCK", key_, owner_}, now);
    const DurationMs ttl = std::min(ttl_for_validity(kept_until - now), DurationMs{kMaxTtlMs});
    keeps_ = true;
    heals_ = false;
    renew_ttl_ = ttl;
    begin_round(Verb::kRenew, {"RENEW", key_, owner_, std::to_string(ttl.count)}, now);
    return;
  }
  if (acquiring() || next_) release_attempt(now);
  finish(Outcome::kCancelled, now);
}

void Redlock::on_reply(uint64_t id, const Reply& reply, TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
  const auto at =
      std::find_if(requests_.begin(), requests_.end(), [id](const auto& r) { return r.id == id; });
  if (at == requests_.end()) return;
  if (reply.kind == Reply::Kind::kNext) {
    answer_next(*at, reply, now);
    return judge(now);
  }
  const Request request = std::move(*at);
  requests_.erase(at);
  answer(request, reply, now);
  judge(now);
}

void Redlock::on_freed(TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
  if (state_ != State::kPausing || freed_) return;
  // A random delay, so that one of several clients that get the event comes first. Once in each pause:
  // every server reports the same release, and the shortest of so many random delays would be close to 0.
  freed_ = true;
  pause_until_ = std::min(pause_until_, saturating_add(now, {some_of(config_.min_wait)}));
  do_due(now);
}

void Redlock::on_time(TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
}

// Handles one request whose deadline has passed as lost. Returns false if there is none. A LOCK stays in
// requests_, because its grant may come later.
bool Redlock::time_out_one(TimeMs now) {
  const auto at = std::find_if(requests_.begin(), requests_.end(),
                               [now](const Request& r) { return is_due(r.deadline, now); });
  if (at == requests_.end()) return false;
  const Request request = *at;
  at->deadline = kNever;
  if (request.quiet) forget_quiet(request);
  if (!request.makes_hold() || request.quiet) requests_.erase(at);
  answer(request, {Reply::Kind::kLost, 0, "no answer in time"}, now);
  judge(now);
  return true;
}

void Redlock::do_due(TimeMs now) {
  while (time_out_one(now)) {
  }
  judge(now);
  if (state_ == State::kLocking && is_due(repeat_at_, now)) return repeat_locks(now);
  if (next_ && is_due(give_up_at_, now)) return give_up(now);
  if (state_ == State::kQueueing && is_due(look_at_, now))
    return next_ ? refresh_joins(now) : try_other_servers(now);
  if (state_ != State::kPausing) return;
  if (is_due(wait_until_, now)) return finish_wait(now);
  if (!is_due(pause_until_, now)) return;
  ++attempts_;
  begin_attempt(fresh_owner(), now);
}

std::optional<TimeMs> Redlock::next_deadline() const {
  TimeMs next = kNever;
  for (const Request& r : requests_) next = std::min(next, r.deadline);
  if (acquiring() || state_ == State::kHeld) next = std::min(next, valid_until_);
  if (state_ == State::kLocking) next = std::min({next, repeat_at_, settle_at_});
  if (state_ == State::kQueueing) next = std::min(next, look_at_);
  if (next_) next = std::min(next, give_up_at_);
  if (state_ == State::kPausing) next = std::min({next, pause_until_, wait_until_});
  if (next == kNever) return std::nullopt;
  return next;
}

void Redlock::check_invariants() const {
  const bool ends = state_ == State::kIdle || state_ == State::kOver;
  const bool quiet =
      std::any_of(requests_.begin(), requests_.end(), [](const Request& r) { return r.quiet; });
  assert(ends || state_ == State::kHeld || wait_id_ != 0 || next_deadline());  // progress is possible
  assert(!ends || quiet || !next_deadline());
  assert(ends || servers_.size() == config_.servers);
  assert(state_ != State::kQueueing || (wait_id_ != 0 && !leads_));
  assert(wait_id_ == 0 || (config_.wait && (acquiring() || state_ == State::kQueueing)));
  assert(!leads_ || (wait_id_ != 0 && owner_ == wait_owner_));
  assert(!next_ || (config_.hands_over && wait_id_ != 0 && owner_ == wait_owner_));
  assert(next_ || give_up_at_ == kNever);
  assert(repeat_at_ == kNever || (leads_ && state_ == State::kLocking));
  for (const Request& r : requests_) {
    assert(r.id > 0 && r.id <= last_id_ && r.server < config_.servers);
    const bool present = r.owner == (r.verb == Verb::kWait ? wait_owner_ : owner_);
    assert(present || (r.makes_hold() && (r.deadline == kNever || r.quiet)) || ends);
    assert(r.verb != Verb::kWait || r.id == wait_id_ || r.quiet);
    assert(r.verb != Verb::kFence || state_ == State::kFencing);
    assert(r.verb != Verb::kRenew ||
           ((state_ == State::kHeld || state_ == State::kReleasing) && r.id >= round_from_));
    assert(r.verb != Verb::kHeal || !acquiring());
    assert(r.verb != Verb::kUnlock || state_ == State::kReleasing);
  }
  if (state_ == State::kHeld) {
    assert(owner_.size() == 32 && token_ > 0 && token_ <= seen_);
    assert(count(&ServerState::lock, Vote::kYes) >= config_.quorum);
    for (const ServerState& s : servers_) assert(s.without || s.round == Vote::kPending || !s.to_heal);
  }
  if (state_ == State::kFencing) assert(fence_ > 0 && fence_ <= seen_);
}

}  // namespace holdfast::client
