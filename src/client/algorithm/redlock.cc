// The phases of Redlock: what follows from all answers and from time. redlock_requests.cc has the requests
// and the meaning of each answer.
#include "client/algorithm/redlock.h"

#include <algorithm>
#include <cassert>

namespace holdfast::client {

namespace redlock {

size_t Attempt::count(Vote vote) const {
  return static_cast<size_t>(std::ranges::count(servers, vote, &Server::lock));
}

uint64_t Attempt::largest_token() const {
  uint64_t largest = 0;
  for (const Server& s : servers) {
    if (s.lock == Vote::kYes) largest = std::max(largest, s.token);
  }
  return largest;
}

size_t Round::count(Vote vote) const { return static_cast<size_t>(std::ranges::count(votes, vote)); }

}  // namespace redlock

namespace {

// Returns the attempt of a phase; null if it has none.
template <typename Phase>
auto* attempt_in(Phase& phase) {
  if (auto* locking = std::get_if<redlock::Locking>(&phase)) return &locking->attempt;
  if (auto* fencing = std::get_if<redlock::Fencing>(&phase)) return &fencing->attempt;
  auto* held = std::get_if<redlock::Held>(&phase);
  return held == nullptr ? nullptr : &held->attempt;
}

}  // namespace

Redlock::Redlock(const RedlockConfig& config, std::string key, std::vector<std::string> mode,
                 std::function<uint64_t(uint64_t)> random)
    : config_(config),
      key_(std::move(key)),
      mode_(std::move(mode)),
      random_(std::move(random)),
      reports_(config.servers) {
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

// --- the phases ---

void Redlock::run_phase(TimeMs now) {
  if (auto* locking = std::get_if<Locking>(&phase_)) return run(*locking, now);
  if (auto* fencing = std::get_if<Fencing>(&phase_)) return run(*fencing, now);
  if (auto* pausing = std::get_if<Pausing>(&phase_)) return run(*pausing, now);
  if (auto* held = std::get_if<Held>(&phase_)) return run(*held, now);
  if (auto* releasing = std::get_if<Releasing>(&phase_)) return run(*releasing, now);
}

void Redlock::run(Locking& locking, TimeMs now) {
  const Attempt& attempt = locking.attempt;
  if (is_deadlocked(attempt) || is_due(attempt.valid_until, now)) return fail(attempt, now);
  size_t same = 0;
  for (const Attempt::Server& s : attempt.servers) {
    if (s.lock != Vote::kYes) continue;
    const auto equal = static_cast<size_t>(std::ranges::count_if(
        attempt.servers, [&](const auto& o) { return o.lock == Vote::kYes && o.token == s.token; }));
    same = std::max(same, equal);
    if (equal >= config_.quorum) return hold(attempt, s.token, now);
  }
  const size_t yes = attempt.count(Vote::kYes);
  const size_t pending = attempt.count(Vote::kPending);
  if (yes + pending < config_.quorum) return fail(attempt, now);
  if (yes >= config_.quorum && same + pending < config_.quorum)
    begin_fencing(attempt, attempt.largest_token(), now);
}

void Redlock::run(Fencing& fencing, TimeMs now) {
  const Attempt& attempt = fencing.attempt;
  if (is_deadlocked(attempt) || is_due(attempt.valid_until, now)) return fail(attempt, now);
  const size_t yes = fencing.round.count(Vote::kYes);
  if (yes >= config_.quorum) return hold(attempt, fencing.token, now);
  const size_t unasked = attempt.count(Vote::kPending);
  if (yes + fencing.round.count(Vote::kPending) + unasked >= config_.quorum) return;
  if (attempt.count(Vote::kYes) + unasked < config_.quorum) return fail(attempt, now);
  assert(attempt.largest_token() > fencing.token);
  begin_fencing(attempt, attempt.largest_token(), now);
}

void Redlock::run(const Pausing& pausing, TimeMs now) {
  if (is_due(wait_until_, now)) return finish_wait();
  if (!is_due(pausing.until, now)) return;
  ++attempts_;
  begin_attempt(fresh_owner(), std::nullopt, now);
}

void Redlock::run(Held& held, TimeMs now) {
  if (is_due(held.valid_until, now)) return lose();
  judge(held);
  if (is_due(held.valid_until, now)) return lose();
  heal(held, now);
}

// The lock was lost if so many servers answer that they are without the hold that no quorum can have it. A
// server that rejects the request, for example with LOADING, may have the hold.
void Redlock::run(const Releasing& releasing, TimeMs /*now*/) {
  const size_t yes = releasing.round.count(Vote::kYes);
  const size_t no = releasing.round.count(Vote::kNo);
  const size_t pending = releasing.round.count(Vote::kPending);
  if (yes >= config_.quorum) return finish(Outcome::kOk);
  if (no > spare()) return finish(Outcome::kExpired);
  if (yes + pending >= config_.quorum || no + pending > spare()) return;
  finish(releasing.round.count(Vote::kLost) > 0 ? Outcome::kUnreachable : Outcome::kRefused);
}

// --- changes of phase ---

void Redlock::begin_attempt(const std::string& owner, std::optional<QueuedWait> wait, TimeMs now) {
  result_ = {};
  Attempt attempt{owner, validity(now, config_.ttl), {config_.servers, Attempt::Server{}}};
  phase_ = Locking{std::move(attempt), std::move(wait)};
  for (size_t server = 0; server < config_.servers; ++server)
    ask_lock(std::get<Locking>(phase_).attempt, server, true, now);
}

void Redlock::begin_fencing(Attempt attempt, uint64_t token, TimeMs now) {
  forget_rounds();
  Round round{last_id_ + 1, std::vector<Vote>(config_.servers, Vote::kNone)};
  phase_ = Fencing{std::move(attempt), token, std::move(round)};
  auto& fencing = std::get<Fencing>(phase_);
  for (size_t server = 0; server < config_.servers; ++server) {
    if (fencing.attempt.servers[server].lock == Vote::kYes) ask_fence(fencing, server, now);
  }
}

void Redlock::pause(const std::string& owner, TimeMs now) {
  phase_ = Pausing{owner, saturating_add(now, next_pause()), false};
}

void Redlock::hold(Attempt attempt, uint64_t token, TimeMs now) {
  end_wait();
  forget_rounds();
  const TimeMs valid_until = attempt.valid_until;
  phase_ = Held{std::move(attempt), token, now, valid_until, std::nullopt};
  result_ = status_of(Outcome::kOk, reports_);
}

// Ends a failed attempt or a failed wait in the queue, and chooses the next phase. `failed` may be part of
// the present one.
void Redlock::fail(const Attempt& failed, TimeMs now) {
  const Attempt attempt = failed;
  const Outcome why = why_failed(attempt, now);
  if (acquiring()) release_attempt(attempt);
  if (is_deadlocked(attempt)) return finish(Outcome::kDeadlock);
  if (is_permanently_refused(attempt)) return finish(Outcome::kRefused);
  result_ = status_of(why, reports_);
  if (!config_.wait) return finish(why);
  const bool queues = config_.queues && config_.servers == 1 && why == Outcome::kBusy;
  if (is_due(wait_until_, now) || (!queues && attempts_ == config_.max_attempts)) return finish_wait();
  end_wait();
  queues ? begin_queueing(now) : pause(attempt.owner, now);
}

void Redlock::lose() {
  release_attempt(std::get<Held>(phase_).attempt);
  finish(Outcome::kExpired);
}

void Redlock::finish(Outcome outcome) {
  end_wait();
  forget_rounds();
  forget_deadlines();
  const auto* releasing = std::get_if<Releasing>(&phase_);
  phase_ = redlock::Over{owner(), releasing != nullptr && releasing->keeps};
  result_ = status_of(outcome, reports_);
}

// Ends the wait with the outcome of the last attempt, which is in result_.
void Redlock::finish_wait() {
  const Outcome last = result_.outcome;
  const bool busy = last == Outcome::kBusy || last == Outcome::kExpired;
  finish(busy ? Outcome::kTimeout : last);
  if (busy && attempts_ == config_.max_attempts)
    result_.message = "other owners held the lock at each of " + std::to_string(attempts_) + " attempts";
}

// The connection of the wait is not needed any more: the wait has ended, or a LOCK has taken its grant
// over.
void Redlock::end_wait() {
  std::optional<QueuedWait> wait;
  if (auto* queueing = std::get_if<Queueing>(&phase_)) wait = queueing->wait;
  if (auto* locking = std::get_if<Locking>(&phase_)) wait = std::exchange(locking->wait, std::nullopt);
  if (!wait) return;
  ends_.push_back(wait->id);
  std::erase_if(requests_, [&](const Request& r) { return r.id == wait->id; });
}

// --- what the decisions need ---

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

Outcome Redlock::why_failed(const Attempt& attempt, TimeMs now) const {
  const bool late = is_due(attempt.valid_until, now);
  const size_t lost = attempt.count(Vote::kLost) + (late ? attempt.count(Vote::kPending) : 0);
  const size_t refused = attempt.count(Vote::kRefused);
  const size_t busy = attempt.count(Vote::kNo);
  if (lost > spare()) return Outcome::kUnreachable;
  if (refused > 0 && busy == 0 && refused + lost > spare()) return Outcome::kRefused;
  return late && busy <= spare() ? Outcome::kExpired : Outcome::kBusy;
}

bool Redlock::is_deadlocked(const Attempt& attempt) const {
  for (size_t server = 0; server < config_.servers; ++server) {
    const bool refused = attempt.servers[server].lock == Vote::kRefused;
    if (refused && reports_[server].error == ServerError::kDeadlock) return true;
  }
  return false;
}

bool Redlock::is_permanently_refused(const Attempt& attempt) const {
  size_t refused = 0;
  for (size_t server = 0; server < config_.servers; ++server) {
    const bool here = attempt.servers[server].lock == Vote::kRefused;
    if (here && is_permanent(reports_[server].error)) ++refused;
  }
  return refused > spare();
}

// --- the public functions ---

void Redlock::acquire(TimeMs now, uint64_t clock_us) {
  assert(state() == State::kIdle);
  clock_us_ = clock_us;
  wait_until_ = now;
  if (config_.wait) wait_until_ = config_.wait->count == 0 ? kNever : saturating_add(now, *config_.wait);
  attempts_ = 1;
  if (!is_due(validity(now, config_.ttl), now)) return begin_attempt(fresh_owner(), std::nullopt, now);
  finish(Outcome::kRefused);
  result_.message = "the ttl is not longer than the margin for the drift of clocks; choose a longer ttl";
}

void Redlock::release(TimeMs now, DurationMs at_least) {
  if (state() == State::kOver || state() == State::kReleasing) return;
  auto* held = std::get_if<Held>(&phase_);
  if (held == nullptr) {
    if (acquiring()) release_attempt(*present_attempt());
    return finish(Outcome::kCancelled);
  }
  if (is_due(held->valid_until, now)) return lose();
  const std::string owner = held->attempt.owner;
  const TimeMs kept_until = saturating_add(held->since, at_least);
  if (is_due(kept_until, now)) {
    Round round = begin_round(Verb::kUnlock, owner, {"UNLOCK", key_, owner}, now);
    phase_ = Releasing{owner, false, std::move(round)};
  } else {
    const DurationMs ttl = std::min(ttl_for_validity(kept_until - now), DurationMs{kMaxTtlMs});
    Round round = begin_round(Verb::kRenew, owner, {"RENEW", key_, owner, std::to_string(ttl.count)}, now);
    phase_ = Releasing{owner, true, std::move(round)};
  }
}

void Redlock::on_reply(uint64_t id, const Reply& reply, TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
  const auto at = std::ranges::find(requests_, id, &Request::id);
  if (at == requests_.end()) return;
  const Request request = std::move(*at);
  requests_.erase(at);
  answer(request, reply, now);
  run_phase(now);
}

void Redlock::on_freed(TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
  auto* pausing = std::get_if<Pausing>(&phase_);
  if (pausing == nullptr || pausing->freed) return;
  // A random delay, so that one of several clients that get the event comes first. Once in each pause:
  // every server reports the same release, and the shortest of so many random delays would be close to 0.
  pausing->freed = true;
  pausing->until = std::min(pausing->until, saturating_add(now, {some_of(config_.min_wait)}));
  do_due(now);
}

void Redlock::on_time(TimeMs now, uint64_t clock_us) {
  clock_us_ = clock_us;
  do_due(now);
}

void Redlock::do_due(TimeMs now) {
  while (time_out_one(now)) {
  }
  run_phase(now);
}

// Handles one request whose deadline has passed as lost. Returns false if there is none. A LOCK stays in
// requests_, because its grant may come later.
bool Redlock::time_out_one(TimeMs now) {
  const auto at = std::ranges::find_if(requests_, [now](const auto& r) { return is_due(r.deadline, now); });
  if (at == requests_.end()) return false;
  const Request request = *at;
  at->deadline = kNever;
  if (!request.makes_hold()) requests_.erase(at);
  answer(request, {Reply::Kind::kLost, 0, "no answer in time"}, now);
  run_phase(now);
  return true;
}

std::optional<TimeMs> Redlock::next_deadline() const {
  TimeMs next = kNever;
  for (const Request& r : requests_) next = std::min(next, r.deadline);
  if (acquiring()) next = std::min(next, present_attempt()->valid_until);
  if (const auto* held = std::get_if<Held>(&phase_)) next = std::min(next, held->valid_until);
  if (const auto* pausing = std::get_if<Pausing>(&phase_))
    next = std::min({next, pausing->until, wait_until_});
  if (next == kNever) return std::nullopt;
  return next;
}

const Status* Redlock::renewal() const {
  const auto* held = std::get_if<Held>(&phase_);
  return held != nullptr && held->renewal && held->renewal->result ? &*held->renewal->result : nullptr;
}

const std::string& Redlock::owner() const {
  static const std::string kNone;
  if (const auto* queueing = std::get_if<Queueing>(&phase_)) return queueing->wait.owner;
  if (const auto* pausing = std::get_if<Pausing>(&phase_)) return pausing->owner;
  if (const auto* releasing = std::get_if<Releasing>(&phase_)) return releasing->owner;
  if (const auto* over = std::get_if<redlock::Over>(&phase_)) return over->owner;
  const Attempt* attempt = present_attempt();
  return attempt == nullptr ? kNone : attempt->owner;
}

Redlock::Attempt* Redlock::present_attempt() { return attempt_in(phase_); }
const Redlock::Attempt* Redlock::present_attempt() const { return attempt_in(phase_); }

void Redlock::check_invariants() const {
  const bool ends = state() == State::kIdle || state() == State::kOver;
  assert(ends || state() == State::kHeld || state() == State::kQueueing || next_deadline());
  assert(!ends || !next_deadline());
  assert(state() != State::kQueueing || (config_.wait && config_.servers == 1));
  for (const Request& r : requests_) {
    assert(r.id > 0 && r.id <= last_id_ && r.server < config_.servers);
    assert(ends || r.owner == owner() || (r.makes_hold() && r.deadline == kNever));
    assert(r.verb != Verb::kWait || state() == State::kQueueing);
    assert(r.verb != Verb::kFence || state() == State::kFencing);
    assert(r.verb != Verb::kRenew || state() == State::kHeld || state() == State::kReleasing);
    assert(r.verb != Verb::kHeal || !acquiring());
    assert(r.verb != Verb::kUnlock || state() == State::kReleasing);
  }
  if (const auto* locking = std::get_if<Locking>(&phase_))
    assert(!locking->wait || locking->wait->owner == locking->attempt.owner);
  if (const auto* fencing = std::get_if<Fencing>(&phase_))
    assert(fencing->token > 0 && fencing->token <= seen_);
  if (const auto* held = std::get_if<Held>(&phase_)) {
    assert(held->attempt.owner.size() == 32 && held->token > 0 && held->token <= seen_);
    assert(held->attempt.count(Vote::kYes) >= config_.quorum);
  }
}

}  // namespace holdfast::client
