// The requests of Redlock to servers, and the meaning of each answer. redlock.cc has the decisions that
// follow from all answers.
#include <algorithm>
#include <cassert>

#include "client/algorithm/redlock.h"
#include "client/base/validity.h"

namespace holdfast::client {

namespace {

// The most requests remembered, including those that timed out. Beyond it the oldest timed-out LOCK is
// forgotten.
constexpr size_t kMaxUnanswered = 4096;

// A waiter asks the other servers after a random time of 1 to 2 times kPatience * max_wait.
constexpr int64_t kPatience = 10;
// How often LOCK is repeated on servers where the previous holder is not released yet.
constexpr int kRepeats = 5;

const char* const kBadAnswer = "an answer of an unknown form";

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

// The milliseconds for the WAIT of a LOCK; 0: no limit.
int64_t Redlock::left_of_wait(TimeMs now) const {
  return wait_until_ == kNever ? 0 : std::clamp<int64_t>((wait_until_ - now).count, 1, kMaxTtlMs);
}

// Returns the token to request. A wait that was granted in a queue has a token there already; the other
// servers should give the same.
uint64_t Redlock::hint() const {
  if (next_) return std::max(seen_, next_token_);
  return leads_ ? seen_ : std::min(std::max(clock_us_, seen_ + 1), kMaxToken);
}

TimeMs Redlock::validity(TimeMs from, DurationMs ttl) const {
  return end_of_validity(from, ttl, config_.drift);
}

Redlock::Request& Redlock::ask(Verb verb, size_t server, std::vector<std::string> argv, TimeMs deadline,
                               bool quiet) {
  if (requests_.size() >= kMaxUnanswered) {
    const auto old = std::find_if(requests_.begin(), requests_.end(), [](const Request& r) {
      return r.makes_hold() && !r.quiet && r.deadline == kNever;
    });
    if (old != requests_.end()) requests_.erase(old);
  }
  sends_.push_back({server, ++last_id_, std::move(argv), verb == Verb::kWait && !quiet, quiet});
  Request& request = requests_.emplace_back();
  request.id = last_id_;
  request.verb = verb;
  request.server = server;
  request.owner = owner_;
  request.deadline = deadline;
  request.quiet = quiet;
  return request;
}

void Redlock::ask_lock(size_t server, bool hinted, TimeMs now) {
  std::vector<std::string> argv = {"LOCK", key_, owner_, std::to_string(config_.ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  if (hinted) argv.insert(argv.end(), {"TOKEN", std::to_string(hint())});
  Request& request = ask(Verb::kLock, server, std::move(argv), saturating_add(now, config_.server_timeout));
  request.hinted = hinted;
  request.ttl = config_.ttl;
  request.sent = now;
  servers_[server].lock = Vote::kPending;
  servers_[server].report = {"", Outcome::kUnreachable, 0, kNoAnswerYet};
}

// `without`: a server that is known to refuse. It is not asked.
void Redlock::begin_attempt(const std::string& owner, TimeMs now, std::optional<size_t> without) {
  state_ = State::kLocking;
  owner_ = owner;
  valid_until_ = validity(now, config_.ttl);
  settle_at_ = kNever;
  servers_.assign(config_.servers, {});
  result_ = {};
  for (size_t server = 0; server < config_.servers; ++server) {
    if (server != without) ask_lock(server, true, now);
  }
  if (!without) return;
  servers_[*without].lock = Vote::kNo;
  servers_[*without].report.outcome = Outcome::kBusy;
}

// Sends the LOCK that waits in the server's queue. The validity of the hold does not count meanwhile: it
// begins when a LOCK without SESSION takes the grant over.
void Redlock::begin_queueing(size_t server, TimeMs now) {
  owner_ = wait_owner_ = fresh_owner();
  wait_server_ = server;
  if (config_.backoff) pause_limit_ms_ = static_cast<double>(config_.backoff->first.count);
  for (ServerState& s : servers_) {
    if (s.lock == Vote::kNone) s.report.text = kNotAsked;
  }
  const int64_t left = left_of_wait(now);
  std::vector<std::string> argv = {"LOCK", key_, owner_, std::to_string(config_.ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  argv.insert(argv.end(), {"WAIT", std::to_string(left)});
  quiet_ = config_.hands_over && !old_servers_;
  if (quiet_) {
    argv.insert(argv.end(), {"ASYNC", "QUIET", "NEXT", "BEHIND"});
  } else {
    argv.emplace_back("SESSION");
  }
  argv.insert(argv.end(), {"TOKEN", std::to_string(hint())});
  Request& request = ask(Verb::kWait, server, std::move(argv),
                         saturating_add(wait_until_, config_.server_timeout), quiet_);
  request.ttl = config_.ttl;
  request.sent = now;
  wait_id_ = last_id_;
  await_turn(now);
}

void Redlock::await_turn(TimeMs now) {
  state_ = State::kQueueing;
  valid_until_ = kNever;
  const DurationMs patience{kPatience * config_.max_wait.count};
  const bool others_suffice = config_.servers - 1 >= config_.quorum;
  look_at_ = others_suffice ? saturating_add(now, {1 + patience.count + some_of(patience)}) : kNever;
}

// Asks whether the other servers grant the lock although the wait in the queue goes on: the queue's server
// may hang, or have a hold that no other server has.
void Redlock::try_other_servers(TimeMs now) { begin_attempt(fresh_owner(), now, wait_server_); }

// Repeats LOCK on the servers that said no: the previous holder may not be released on all of them yet.
void Redlock::repeat_locks(TimeMs now) {
  repeat_at_ = kNever;
  --repeats_;
  for (size_t server = 0; server < config_.servers; ++server) {
    if (servers_[server].lock == Vote::kNo) ask_lock(server, true, now);
  }
}

void Redlock::end_wait(TimeMs now) {
  if (wait_id_ == 0) return;
  if (quiet_) {
    cancel_joins(now);
  } else {
    ends_.push_back(wait_id_);
    std::erase_if(requests_, [this](const Request& r) { return r.id == wait_id_; });
  }
  wait_id_ = 0;
  leads_ = next_ = false;
  repeat_at_ = give_up_at_ = kNever;
}

// Sends the same request to every server; later answers to an earlier round do not count. The first server
// has the queue. With hand-overs it is asked first, so that the waiter behind the next one learns early
// that it is the next one. Otherwise it is asked last: when a waiter in its queue gets the lock, the other
// servers should be free.
void Redlock::begin_round(Verb verb, const std::vector<std::string>& argv, TimeMs now) {
  forget_rounds();
  round_from_ = last_id_ + 1;
  for (size_t i = 0; i < config_.servers; ++i) {
    const size_t server = config_.hands_over ? i : config_.servers - 1 - i;
    servers_[server].round = Vote::kPending;
    servers_[server].report = {"", Outcome::kUnreachable, servers_[server].token, kNoAnswerYet};
    const TimeMs deadline = saturating_add(now, config_.server_timeout);
    if (state_ == State::kReleasing && joins(server)) {
      release_join(verb, server, argv, deadline);
    } else {
      ask(verb, server, argv, deadline);
    }
  }
}

void Redlock::begin_fencing(uint64_t token, TimeMs now) {
  state_ = State::kFencing;
  fence_ = token;
  forget_rounds();
  for (size_t server = 0; server < config_.servers; ++server) {
    if (servers_[server].lock != Vote::kYes) continue;
    servers_[server].round = Vote::kPending;
    ask(Verb::kFence, server, {"FENCE", key_, owner_, std::to_string(fence_)},
        saturating_add(now, config_.server_timeout));
  }
}

void Redlock::forget_rounds() {
  std::erase_if(requests_, [](const Request& r) { return r.verb >= Verb::kFence; });
  for (ServerState& s : servers_) {
    s.round = Vote::kNone;
    s.without = s.to_heal = false;
  }
}

// Sends UNLOCK and ignores the answer. If UNLOCK does not arrive, the hold expires with its TTL.
void Redlock::unlock(size_t server, const std::string& owner) {
  sends_.push_back({server, ++last_id_, {"UNLOCK", key_, owner}, false});
}

// The same, and ends the quiet waits of this owner. `quiet`: on their connection, so that it follows their
// LOCKs. Otherwise that connection broke: the server may not know it yet, or may have granted a wait, whose
// hold does not end with the connection.
void Redlock::unlock_with_waits(size_t server, const std::string& owner, bool quiet) {
  sends_.push_back({server, ++last_id_, {"UNLOCK", key_, owner, "WAITS"}, false, quiet});
}

// Releases the attempt on all servers. Only LOCKs stay in requests_, because a late grant must be released.
// A single server that said no has no hold to release. With several servers UNLOCK also goes to those that
// said no, because the transport may have sent a LOCK twice.
void Redlock::release_attempt(TimeMs now) {
  forget_rounds();
  for (Request& r : requests_) {
    if (!r.quiet) r.deadline = kNever;
  }
  if (config_.servers == 1 && (servers_[0].lock == Vote::kNo || servers_[0].lock == Vote::kRefused)) return;
  for (size_t server = config_.servers; server-- > 0;) {
    if (joins(server)) continue;
    const bool lost_wait = next_ && servers_[server].lock == Vote::kLost;
    lost_wait ? unlock_with_waits(server, owner_, false) : unlock(server, owner_);
  }
  if (owner_ == wait_owner_) cancel_joins(now);
}

// --- answers ---

bool Redlock::is_of_far_hint(const Reply& reply) {
  return reply.kind == Reply::Kind::kError && reply.text.find("max-token-lead") != std::string::npos;
}

Redlock::Vote Redlock::note(const Request& request, const Reply& reply) {
  const bool grants = request.makes_hold() || request.verb == Verb::kWait;
  ServerReport& report = servers_[request.server].report;
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
      report.outcome = reply.text.starts_with("DEADLOCK") ? Outcome::kDeadlock : Outcome::kRefused;
      return Vote::kRefused;
    case Reply::Kind::kLost:
      report.outcome = Outcome::kUnreachable;
      return Vote::kLost;
    case Reply::Kind::kText:
    case Reply::Kind::kNext:
      break;
  }
  report = {"", Outcome::kRefused, 0, kBadAnswer};
  return Vote::kRefused;
}

void Redlock::answer(const Request& request, const Reply& reply, TimeMs now) {
  if (reply.kind == Reply::Kind::kGrant && reply.number > 0) {
    seen_ = std::max(seen_, static_cast<uint64_t>(reply.number));
  }
  switch (request.verb) {
    case Verb::kLock:
      return answer_lock(request, reply, now);
    case Verb::kWait:
      return answer_wait(request, reply, now);
    case Verb::kJoin:
      return answer_join(request, reply, now);
    case Verb::kProbe:
      return answer_probe(request, reply);
    case Verb::kFence:
      return answer_fence(request, reply);
    case Verb::kRenew:
      return answer_renew(request, reply);
    case Verb::kHeal:
      return answer_heal(request, reply, now);
    case Verb::kUnlock:
      servers_[request.server].round = note(request, reply);
      return;
  }
}

// An owner may have two LOCKs at a server: one without an answer does not undo the grant of the other. Once
// the lock is held, no answer does: only a renewal shows that a server is without the hold.
bool Redlock::keeps_grant(const Request& request, const Reply& reply) const {
  if (servers_[request.server].lock != Vote::kYes || reply.kind == Reply::Kind::kGrant) return false;
  return reply.kind == Reply::Kind::kLost || state_ == State::kHeld;
}

void Redlock::answer_lock(const Request& request, const Reply& reply, TimeMs now) {
  const bool present =
      request.owner == owner_ && !request.cancelled && (acquiring() || state_ == State::kHeld);
  if (!present) {
    const bool kept = keeps_ && request.owner == owner_;  // the RENEW follows it
    if (reply.kind != Reply::Kind::kGrant || kept) return;
    // The same owner may wait there again: its UNLOCK could arrive behind that wait's grant.
    if (next_ && request.owner == owner_ && !request.cancelled) return leave(request.server, now);
    return unlock(request.server, request.owner);
  }
  // This machine's clock is far ahead of the server's, so the hint is useless: ask again without one.
  if (acquiring() && request.hinted && is_of_far_hint(reply)) return ask_lock(request.server, false, now);
  if (keeps_grant(request, reply)) return;
  ServerState& server = servers_[request.server];
  server.lock = note(request, reply);
  if (server.lock != Vote::kYes) return;
  if (next_) valid_until_ = std::min(valid_until_, validity(request.sent, config_.ttl));
  record_grant(request.server, reply, now);
}

void Redlock::record_grant(size_t index, const Reply& reply, TimeMs now) {
  ServerState& server = servers_[index];
  server.token = static_cast<uint64_t>(reply.number);
  if (state_ == State::kHeld) result_.servers[index] = server.report;
  // The grant came late: FENCE is already running on the other servers. A grant with a larger token does
  // not count until the next round of FENCE.
  if (state_ == State::kFencing && server.token <= fence_) {
    server.round = Vote::kPending;
    ask(Verb::kFence, index, {"FENCE", key_, owner_, std::to_string(fence_)},
        saturating_add(now, config_.server_timeout));
  }
}

void Redlock::answer_wait(const Request& request, const Reply& reply, TimeMs now) {
  assert(request.id == wait_id_ && !leads_ && !next_);
  if (quiet_ && is_of_old_server(reply)) return queue_the_old_way(now);
  if (quiet_ && is_free(reply)) return leave_queue(now);
  const Vote vote = note(request, reply);
  if (vote == Vote::kYes) {
    if (acquiring()) release_attempt(now);
    leads_ = true;
    repeats_ = kRepeats;
    return begin_attempt(wait_owner_, now);
  }
  servers_[wait_server_].lock = vote;
  if (quiet_ && vote == Vote::kLost && !is_due(request.deadline, now))
    unlock_with_waits(wait_server_, request.owner, false);
  if (vote == Vote::kNo) wait_until_ = now;  // the server's clock says when the wait is over
  end_wait(now);
  if (!acquiring()) fail_attempt(now);
}

// The server of the queue does not know quiet waits.
void Redlock::queue_the_old_way(TimeMs now) {
  old_servers_ = true;
  if (acquiring()) release_attempt(now);
  end_wait(now);
  begin_queueing(wait_server_, now);
}

void Redlock::answer_fence(const Request& request, const Reply& reply) {
  ServerState& server = servers_[request.server];
  server.round = note(request, reply);
  if (server.round != Vote::kYes) {  // the hold there does not count any more
    server.lock = server.round;
    return;
  }
  server.token = static_cast<uint64_t>(reply.number);
  if (server.token < fence_) {  // the server did not raise the token as requested
    server.report = {"", Outcome::kRefused, 0, kBadAnswer};
    server.lock = server.round = Vote::kRefused;
    return;
  }
  server.report.token = server.token;
  server.lock = Vote::kYes;  // a repeated LOCK may have no answer yet
  seen_ = std::max(seen_, server.token);
  // A larger token: the hold is younger than the known grant.
  if (server.token != fence_) server.round = Vote::kNo;
}

}  // namespace holdfast::client
