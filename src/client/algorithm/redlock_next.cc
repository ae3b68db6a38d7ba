// The hand-over to the next waiter. The waiters of a key are in the queue of one server, which orders them.
// That server tells its first two waiters that their turn is near (kNext). Only then do these also send
// LOCK with WAIT to the other servers of the key. A release by the holder then grants the first one on all
// servers, without a further round trip. They are two, because a hold may be shorter than a round trip: the
// LOCKs of the second one arrive while the first one still waits, and so before its release.
//
// Why this is safe: a LOCK that waits is a slow message. The server executes the same rules at the grant as
// if the LOCK had arrived at that moment, and the rules allow any delay. So each grant counts from the
// sending of its LOCK, as without a wait. As a wait may be long, a PING follows it on the same connection:
// if its reply comes before the grant, the grant is younger than the sending of the PING, and counts from
// there. A grant that is too old by this rule is repeated by a plain LOCK. The servers order grants and
// replies on a connection, so no clock of a server matters.
//
// Why it does not take the lock's servers from a holder that lives: a server may have lost the hold,
// because it restarted or was away for longer than the TTL. The holder repairs it at its next renewal, if
// no other client holds or waits there. So on the other servers the next waiter waits only BEHIND a holder.
// A server without a holder answers FREE and grants nothing; it is asked again later. The next waiter
// requests free servers by a LOCK without BEHIND as soon as they and its grants are a quorum: then the
// former holder has none. This LOCK waits, too, as another waiter may come first. A hold can also expire on
// a server while the next waiter waits there, or another waiter can request a free server for a moment. If
// no quorum follows in time, the waiter releases such a grant, and waits on at the other servers. The same
// owner sends no LOCK to that server again: its UNLOCK could arrive behind the new LOCK. If the wait ended
// then, another owner of the same client would request that server. Waiters would pass it on among
// themselves until its holder has lost the lock.
//
// Why it ends: several waiters can each be granted by some servers, if their LOCKs arrive in different
// orders, or if another server has another queue. From its first grant on a waiter therefore waits only for
// a random time for the others, at most max_wait. If the queue's server granted it, it then releases all
// servers and tries again.
//
// A wait ends with its connection. Before that, UNLOCK ... WAITS on the same connection cancels it: the
// server executes it behind the LOCK, so that no grant remains.
#include <algorithm>
#include <cassert>

#include "client/algorithm/redlock.h"
#include "client/base/validity.h"

namespace holdfast::client {

namespace {

// Servers whose wait broke, or that were free, are asked again after at most so many times max_wait.
constexpr int64_t kAskedAgain = 10;

}  // namespace

bool Redlock::is_free(const Reply& reply) {
  return reply.kind == Reply::Kind::kText && reply.text == "FREE";
}

// The queue's server has no holder. If the attempt saw that, too, this server has lost the hold, and the
// wait moves to a server that has it. Otherwise the lock has just become free.
void Redlock::leave_queue(TimeMs now) {
  const bool has_lost = servers_[wait_server_].lock == Vote::kYes;
  if (acquiring()) release_attempt(now);
  end_wait(now);
  if (has_lost) {
    contradicted_server_ = wait_server_;
    const std::optional<size_t> queue = queue_server();
    return queue && *queue != wait_server_ ? begin_queueing(*queue, now) : pause(now);
  }
  ++attempts_;
  begin_attempt(fresh_owner(), now);
}

bool Redlock::is_of_old_server(const Reply& reply) {
  return reply.kind == Reply::Kind::kError && reply.text == "ERR syntax error";
}

// The queue's server says that the wait is the first there.
void Redlock::answer_next(Request& request, const Reply& reply, TimeMs now) {
  if (request.id != wait_id_ || next_) return;
  if (acquiring()) release_attempt(now);  // of try_other_servers()
  request.verb = Verb::kJoin;
  next_ = true;
  next_token_ = static_cast<uint64_t>(std::clamp<int64_t>(reply.number, 0, kMaxToken));
  state_ = State::kQueueing;
  owner_ = wait_owner_;
  valid_until_ = kNever;
  const TimeMs since = request.sent;
  servers_.assign(config_.servers, {});
  for (size_t server = 0; server < config_.servers; ++server) {
    if (server != wait_server_) ask_join(server, true, true, now);
  }
  ServerState& first = servers_[wait_server_];
  first.lock = Vote::kPending;
  first.waits_since = since;
  first.report = {"", Outcome::kUnreachable, 0, kNoAnswerYet};
  look_at_ = is_due(saturating_add(since, join_age()), now) ? now : saturating_add(now, join_pause());
}

DurationMs Redlock::join_pause() const {
  return std::min(join_age(), {1 + kAskedAgain * config_.max_wait.count});
}

void Redlock::ask_join(size_t server, bool hinted, bool behind, TimeMs now) {
  const int64_t left = left_of_wait(now);
  std::vector<std::string> argv = {"LOCK", key_, owner_, std::to_string(config_.ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  argv.insert(argv.end(), {"WAIT", std::to_string(left), "ASYNC", "QUIET"});
  if (behind) argv.emplace_back("BEHIND");
  if (hinted) argv.insert(argv.end(), {"TOKEN", std::to_string(next_token_)});
  Request& request =
      ask(Verb::kJoin, server, std::move(argv), saturating_add(wait_until_, config_.server_timeout), true);
  request.hinted = hinted;
  request.behind = behind;
  request.ttl = config_.ttl;
  request.sent = now;
  servers_[server].lock = Vote::kPending;
  servers_[server].free = false;
  servers_[server].waits_since = now;
  servers_[server].report = {"", Outcome::kUnreachable, 0, kNoAnswerYet};
}

// Whether the present owner waits at the server.
bool Redlock::joins(size_t server) const {
  return std::any_of(requests_.begin(), requests_.end(), [&](const Request& r) {
    return r.verb == Verb::kJoin && r.server == server && r.owner == owner_ && !r.cancelled;
  });
}

// Keeps the waits young, replaces those that broke, and asks free servers whether they have a holder again.
void Redlock::refresh_joins(TimeMs now) {
  look_at_ = saturating_add(now, {join_pause().count + 1});
  for (size_t server = 0; server < config_.servers; ++server) {
    const bool probed = std::any_of(requests_.begin(), requests_.end(), [&](const Request& r) {
      return r.verb == Verb::kProbe && r.server == server;
    });
    const Vote vote = servers_[server].lock;
    if (vote == Vote::kPending && !probed) {
      ask(Verb::kProbe, server, {"PING"}, saturating_add(now, config_.server_timeout), true).sent = now;
    } else if (vote == Vote::kLost || vote == Vote::kRefused || servers_[server].free) {
      ask_join(server, true, true, now);
    }
  }
}

void Redlock::answer_probe(const Request& request, const Reply& reply) {
  ServerState& server = servers_[request.server];
  if (!next_ || reply.kind != Reply::Kind::kText || server.lock != Vote::kPending) return;
  server.waits_since = std::max(server.waits_since, request.sent);
}

void Redlock::answer_join(const Request& request, const Reply& reply, TimeMs now) {
  const bool present = !request.cancelled && request.owner == owner_ && (next_ || state_ == State::kHeld);
  if (!present) {
    // The UNLOCK of a cancelled wait follows its LOCK, unless the connection broke.
    if (reply.kind == Reply::Kind::kLost) return unlock_with_waits(request.server, request.owner, false);
    if (reply.kind == Reply::Kind::kGrant && !request.cancelled) unlock(request.server, request.owner);
    return;
  }
  if (next_ && request.hinted && is_of_far_hint(reply))
    return ask_join(request.server, false, request.behind, now);
  if (keeps_grant(request, reply)) return;
  ServerState& server = servers_[request.server];
  server.free = is_free(reply);
  if (is_of_old_server(reply)) {  // it can grant the lock, but not this wait
    old_servers_ = true;
    server.lock = note(request, {Reply::Kind::kLost, 0, reply.text});
  } else {
    server.lock = note(request, server.free ? Reply{Reply::Kind::kNull, 0, ""} : reply);
  }
  if (server.lock != Vote::kYes) return;
  if (state_ == State::kHeld) return record_grant(request.server, reply, now);
  begin_turn(now);
  if (is_due(saturating_add(server.waits_since, {2 * join_age().count}), now))
    return ask_lock(request.server, true, now);
  valid_until_ = std::min(valid_until_, validity(server.waits_since, config_.ttl));
  record_grant(request.server, reply, now);
}

// Requests the free servers as soon as they and the grants are a quorum.
void Redlock::take_free(TimeMs now) {
  const auto free = static_cast<size_t>(std::ranges::count(servers_, true, &ServerState::free));
  if (free == 0 || free + count(&ServerState::lock, Vote::kYes) < config_.quorum) return;
  begin_turn(now);
  for (size_t server = 0; server < config_.servers; ++server) {
    if (servers_[server].free) ask_join(server, true, false, now);
  }
}

// The first server has granted the wait of the next waiter: the others should follow at once.
void Redlock::begin_turn(TimeMs now) {
  if (state_ != State::kQueueing) return;
  state_ = State::kLocking;
  leads_ = true;
  repeats_ = 0;
  result_ = {};
  const DurationMs half{config_.max_wait.count / 2};
  give_up_at_ = saturating_add(now, {1 + half.count + some_of(half)});
}

// The wait fails if too many servers do not answer. It also fails after the release of grants of a quorum:
// then no other client holds the lock.
void Redlock::judge_joins(TimeMs now) {
  const auto open = static_cast<size_t>(std::ranges::count_if(
      servers_, [](const ServerState& s) { return s.lock == Vote::kPending || s.free; }));
  const auto left = static_cast<size_t>(std::ranges::count(servers_, true, &ServerState::left));
  if (deadlocked() || left >= config_.quorum || open + left < config_.quorum) fail_attempt(now);
}

// Whether the wait continues after grants without a quorum: the queue's server did not grant it, and a
// server has another holder.
bool Redlock::may_wait_on() const {
  if (!next_ || state_ != State::kLocking || servers_[wait_server_].lock == Vote::kYes) return false;
  for (size_t server = 0; server < config_.servers; ++server) {
    if (servers_[server].lock == Vote::kPending && joins(server)) return true;
  }
  return false;
}

// Gives the grants back, also those that a LOCK may still get: the servers have lost the hold.
void Redlock::end_turn(TimeMs now) {
  state_ = State::kQueueing;
  leads_ = false;
  valid_until_ = give_up_at_ = kNever;
  for (size_t server = 0; server < config_.servers; ++server) {
    const ServerState& s = servers_[server];
    if (s.lock == Vote::kYes || (s.lock == Vote::kPending && !joins(server))) {
      leave(server, now);
    } else if (s.lock == Vote::kNo && !s.left) {
      ask_join(server, true, true, now);
    }
  }
  judge_joins(now);
}

void Redlock::leave(size_t server, TimeMs now) {
  for (Request& r : requests_) {
    if (r.server != server || r.owner != owner_ || r.cancelled) continue;
    if (r.verb == Verb::kJoin) cancel_join(r, now);
    if (r.verb != Verb::kLock) continue;
    r.cancelled = true;
    r.deadline = kNever;
  }
  unlock(server, owner_);
  servers_[server].lock = Vote::kNo;
  servers_[server].left = true;
  servers_[server].report = {"", Outcome::kBusy, 0, ""};
}

// Too few servers have granted the lock in time: the others have another holder, or another next waiter.
void Redlock::give_up(TimeMs now) {
  give_up_at_ = kNever;
  if (may_wait_on()) return end_turn(now);
  for (ServerState& server : servers_) {
    if (server.lock != Vote::kPending) continue;
    server.lock = Vote::kNo;
    server.report = {"", Outcome::kBusy, 0, ""};
  }
  judge(now);
}

// Cancels the waits, except those of a hold. Their answers still come: by then at the latest
// (server_timeout) they are forgotten.
void Redlock::cancel_joins(TimeMs now) {
  std::erase_if(requests_, [](const Request& r) { return r.verb == Verb::kProbe; });
  for (Request& r : requests_) {
    const bool waits = r.quiet && (r.verb == Verb::kJoin || r.verb == Verb::kWait);
    if (waits && !r.cancelled && (state_ != State::kHeld || r.owner != owner_)) cancel_join(r, now);
  }
}

// Ends a hold whose grant by this server has not arrived, or keeps it for the rest of at_least (RENEW). The
// request must follow the LOCK and its cancellation.
void Redlock::release_join(Verb verb, size_t server, std::vector<std::string> argv, TimeMs deadline) {
  for (Request& r : requests_) {
    if (r.verb != Verb::kJoin || r.server != server || r.owner != owner_) continue;
    r.cancelled = true;
    r.deadline = deadline;
  }
  if (verb == Verb::kUnlock) {
    argv.emplace_back("WAITS");
  } else {
    unlock_with_waits(server, owner_, true);
  }
  ask(verb, server, std::move(argv), deadline, true);
}

// The request had no answer in time. A cancellation would release the hold of this owner: the grant may
// have been lost, and a renewal confirmed. The wait itself has ended there by its own timeout.
void Redlock::forget_quiet(const Request& request) {
  ends_.push_back(request.id);
  const bool waits = request.verb == Verb::kJoin || request.verb == Verb::kWait;
  const bool holds = state_ == State::kHeld && request.owner == owner_;
  if (waits && !request.cancelled && !holds) unlock_with_waits(request.server, request.owner, true);
}

void Redlock::cancel_join(Request& request, TimeMs now) {
  request.verb = Verb::kJoin;
  request.cancelled = true;
  request.deadline = saturating_add(now, config_.server_timeout);
  unlock_with_waits(request.server, request.owner, true);
}

}  // namespace holdfast::client
