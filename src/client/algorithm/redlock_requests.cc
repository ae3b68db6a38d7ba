// The requests of Redlock to servers, and the meaning of each answer. redlock.cc has the decisions that
// follow from all answers.
#include <algorithm>
#include <cassert>

#include "client/algorithm/redlock.h"

namespace holdfast::client {

namespace {

// The most requests remembered, including those that timed out. Beyond it the oldest timed-out LOCK is
// forgotten.
constexpr size_t kMaxUnanswered = 4096;

const char* const kBadAnswer = "an answer of an unknown form";

ServerReport no_answer_yet(uint64_t token = 0) {
  return {"", Outcome::kUnreachable, token, kNoAnswerYet, ServerError::kNone};
}

bool is_of_far_hint(const Reply& reply) { return reply.error == ServerError::kAhead; }

}  // namespace

// --- requests ---

std::string Redlock::fresh_owner() {
  std::string owner;
  for (int i = 0; i < 32; ++i) owner += "0123456789abcdef"[random_(16)];
  return owner;
}

int64_t Redlock::some_of(DurationMs most) const {
  return static_cast<int64_t>(random_(static_cast<uint64_t>(most.count) + 1));
}

// Returns the token to request. A wait that was granted in the queue has a token there already.
uint64_t Redlock::hint() const {
  const auto* locking = std::get_if<Locking>(&phase_);
  const bool granted = locking != nullptr && locking->wait;
  return granted ? seen_ : std::min(std::max(clock_us_, seen_ + 1), kMaxToken);
}

Redlock::Request& Redlock::ask(Verb verb, size_t server, const std::string& owner,
                               std::vector<std::string> argv, TimeMs deadline) {
  if (requests_.size() >= kMaxUnanswered) {
    const auto old = std::ranges::find_if(
        requests_, [](const Request& r) { return r.makes_hold() && r.deadline == kNever; });
    if (old != requests_.end()) requests_.erase(old);
  }
  sends_.push_back({server, ++last_id_, std::move(argv), verb == Verb::kWait});
  Request& request = requests_.emplace_back();
  request.id = last_id_;
  request.verb = verb;
  request.server = server;
  request.owner = owner;
  request.deadline = deadline;
  return request;
}

void Redlock::ask_lock(Attempt& attempt, size_t server, bool hinted, TimeMs now) {
  std::vector<std::string> argv = {"LOCK", key_, attempt.owner, std::to_string(config_.ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  if (hinted) argv.insert(argv.end(), {"TOKEN", std::to_string(hint())});
  Request& request =
      ask(Verb::kLock, server, attempt.owner, std::move(argv), saturating_add(now, config_.server_timeout));
  request.hinted = hinted;
  request.ttl = config_.ttl;
  attempt.servers[server].lock = Vote::kPending;
  reports_[server] = no_answer_yet();
}

// Sends the LOCK that waits in the server's queue. Its hold has no validity: that begins when a LOCK
// without SESSION takes the grant over.
void Redlock::begin_queueing(TimeMs now) {
  const std::string owner = fresh_owner();
  if (config_.backoff) pause_limit_ms_ = static_cast<double>(config_.backoff->first.count);
  const int64_t left =
      wait_until_ == kNever ? 0 : std::clamp<int64_t>((wait_until_ - now).count, 1, kMaxTtlMs);
  std::vector<std::string> argv = {"LOCK", key_, owner, std::to_string(config_.ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  argv.insert(argv.end(), {"WAIT", std::to_string(left), "SESSION", "TOKEN", std::to_string(hint())});
  ask(Verb::kWait, 0, owner, std::move(argv), saturating_add(wait_until_, config_.server_timeout));
  phase_ = Queueing{{last_id_, owner}};
}

void Redlock::ask_fence(Fencing& fencing, size_t server, TimeMs now) {
  const std::string& owner = fencing.attempt.owner;
  fencing.round.votes[server] = Vote::kPending;
  ask(Verb::kFence, server, owner, {"FENCE", key_, owner, std::to_string(fencing.token)},
      saturating_add(now, config_.server_timeout));
}

// Sends the same request to every server; later answers to an earlier round do not count. The first server
// comes last: clients of earlier versions wait there. When one of them gets the lock, the other servers
// should be free.
Redlock::Round Redlock::begin_round(Verb verb, const std::string& owner,
                                    const std::vector<std::string>& argv, TimeMs now) {
  forget_rounds();
  Round round{last_id_ + 1, std::vector<Vote>(config_.servers, Vote::kPending)};
  const Attempt& attempt = *present_attempt();
  for (size_t server = config_.servers; server-- > 0;) {
    reports_[server] = no_answer_yet(attempt.servers[server].token);
    ask(verb, server, owner, argv, saturating_add(now, config_.server_timeout));
  }
  return round;
}

void Redlock::forget_rounds() {
  std::erase_if(requests_, [](const Request& r) { return r.verb >= Verb::kFence; });
}

// Late answers do not count any more. Only LOCKs stay in requests_, because a late grant must be released.
void Redlock::forget_deadlines() {
  for (Request& r : requests_) r.deadline = kNever;
}

// Sends UNLOCK and ignores the answer. If UNLOCK does not arrive, the hold expires with its TTL.
void Redlock::unlock(size_t server, const std::string& owner) {
  sends_.push_back({server, ++last_id_, {"UNLOCK", key_, owner}, false});
}

// Releases the attempt on all servers. A single server that said no has no hold to release. With several
// servers UNLOCK also goes to those that said no, because the transport may have sent a LOCK twice.
void Redlock::release_attempt(const Attempt& attempt) {
  forget_rounds();
  forget_deadlines();
  const Vote first = attempt.servers.front().lock;
  if (config_.servers == 1 && (first == Vote::kNo || first == Vote::kRefused)) return;
  for (size_t server = config_.servers; server-- > 0;) unlock(server, attempt.owner);
}

// --- answers ---

Redlock::Vote Redlock::note(const Request& request, const Reply& reply) {
  const bool grants = request.makes_hold() || request.verb == Verb::kWait;
  ServerReport& report = reports_[request.server];
  report.text = reply.text;
  report.error = reply.error;
  switch (reply.kind) {
    case Reply::Kind::kGrant:
      if (!grants || reply.number < 1) break;
      report = {"", Outcome::kOk, static_cast<uint64_t>(reply.number), ""};
      return Vote::kYes;
    case Reply::Kind::kNull:
      report.outcome = Outcome::kBusy;
      return Vote::kNo;
    case Reply::Kind::kInteger:
      if (grants) break;
      if (reply.number > 0) report.outcome = Outcome::kOk;
      if (reply.number == 0) report.outcome = Outcome::kExpired;
      if (reply.number < 0) report.outcome = Outcome::kNotOwner;
      return reply.number > 0 ? Vote::kYes : Vote::kNo;
    case Reply::Kind::kError:
      report.outcome = reply.error == ServerError::kDeadlock ? Outcome::kDeadlock : Outcome::kRefused;
      return Vote::kRefused;
    case Reply::Kind::kLost:
      report.outcome = Outcome::kUnreachable;
      return Vote::kLost;
    case Reply::Kind::kText:
      break;
  }
  report = {"", Outcome::kRefused, 0, kBadAnswer};
  return Vote::kRefused;
}

void Redlock::answer(const Request& request, const Reply& reply, TimeMs now) {
  if (reply.kind == Reply::Kind::kGrant && reply.number > 0)
    seen_ = std::max(seen_, static_cast<uint64_t>(reply.number));
  switch (request.verb) {
    case Verb::kLock:
      return answer_lock(request, reply, now);
    case Verb::kWait:
      return answer_wait(request, reply, now);
    case Verb::kFence:
      return answer_fence(request, reply);
    case Verb::kRenew:
      return answer_renew(request, reply);
    case Verb::kHeal:
      return answer_heal(request, reply, now);
    case Verb::kUnlock:
      std::get<Releasing>(phase_).round.votes[request.server] = note(request, reply);
      return;
  }
}

// The hold of this owner is kept for the rest of at_least: its RENEW follows the LOCK.
bool Redlock::keeps_hold_of(const std::string& owner) const {
  const auto* releasing = std::get_if<Releasing>(&phase_);
  if (releasing != nullptr) return releasing->keeps && releasing->owner == owner;
  const auto* over = std::get_if<redlock::Over>(&phase_);
  return over != nullptr && over->keeps && over->owner == owner;
}

void Redlock::answer_lock(const Request& request, const Reply& reply, TimeMs now) {
  Attempt* attempt = present_attempt();
  if (attempt == nullptr || attempt->owner != request.owner) {
    const bool granted = reply.kind == Reply::Kind::kGrant && !keeps_hold_of(request.owner);
    if (granted) unlock(request.server, request.owner);
    return;
  }
  // This machine's clock is far ahead of the server's, so the hint is useless: ask again without one.
  if (acquiring() && request.hinted && is_of_far_hint(reply))
    return ask_lock(*attempt, request.server, false, now);
  Attempt::Server& server = attempt->servers[request.server];
  server.lock = note(request, reply);
  if (server.lock != Vote::kYes) return;
  server.token = static_cast<uint64_t>(reply.number);
  if (state() == State::kHeld) result_.servers[request.server] = reports_[request.server];
  // The grant came late: FENCE is already running on the other servers. A grant with a larger token does
  // not count until the next round of FENCE.
  auto* fencing = std::get_if<Fencing>(&phase_);
  if (fencing != nullptr && server.token <= fencing->token) ask_fence(*fencing, request.server, now);
}

void Redlock::answer_wait(const Request& request, const Reply& reply, TimeMs now) {
  const Vote vote = note(request, reply);
  if (vote == Vote::kYes) {
    const QueuedWait wait = std::get<Queueing>(phase_).wait;
    return begin_attempt(wait.owner, wait, now);
  }
  if (vote == Vote::kNo) wait_until_ = now;  // the server's clock says when the wait is over
  fail({request.owner, kNever, {{vote, 0}}}, now);
}

void Redlock::answer_fence(const Request& request, const Reply& reply) {
  auto& fencing = std::get<Fencing>(phase_);
  Attempt::Server& server = fencing.attempt.servers[request.server];
  Vote& vote = fencing.round.votes[request.server];
  vote = note(request, reply);
  if (vote != Vote::kYes) {  // the hold there does not count any more
    server.lock = vote;
    return;
  }
  server.token = static_cast<uint64_t>(reply.number);
  if (server.token < fencing.token) {  // the server did not raise the token as requested
    reports_[request.server] = {"", Outcome::kRefused, 0, kBadAnswer};
    server.lock = vote = Vote::kRefused;
    return;
  }
  reports_[request.server].token = server.token;
  seen_ = std::max(seen_, server.token);
  // A larger token: the hold is younger than the known grant.
  if (server.token != fencing.token) vote = Vote::kNo;
}

}  // namespace holdfast::client
