// Renewals of a hold. A round sends RENEW to every server of the key. A server without the hold gets LOCK
// in the same round, which heals it: same owner, mode and TTL, `TOKEN t`, no WAIT. A server that refuses
// this LOCK is left out until the next round. A server whose hold may still be the SESSION hold of the wait
// gets LOCK, too: that hold ends with the connection of the wait.
//
// A round is confirmed by a quorum of answers of that round, 1 to RENEW or a grant to LOCK, within the
// validity. The hold is lost as soon as so many servers of a round are without it that they can grant the
// lock to another client (`breach`). Then no server is healed: another client may have had the lock
// meanwhile, and the grants of servers that forgot would hide that. With one server, the first such answer
// is the loss.
//
// Why no other client holds the lock meanwhile: each server of a confirmed round keeps the hold until after
// the validity that counts from the round's beginning. The next round is confirmed before that validity
// ends. So at each moment a quorum has the hold, and any other quorum shares a server with it, which
// refuses. That is true for shared holds (rquorum + wquorum > servers) and for counted holds (all servers;
// each counts all holders). The condition: a server keeps what it confirmed, or grants nothing while a
// forgotten hold may be alive (RECOVERING). A server that forgets a hold and grants at once is without it
// until it is healed. Meanwhile the other servers of the quorum must keep the hold; for a counted lock, one
// server must know all holders.
//
// Why tokens stay in order: the token stays t, which the acquisition's quorum has acknowledged. Any later
// acquisition shares a server with that quorum, whose counter is at least t and never decreases. Healing
// adds no acknowledgement and only raises counters. The size of the token of a healed server does not
// matter.
//
// Late arrivals: UNLOCK follows LOCK on the same connection, and a grant that arrives after the end is
// released. A LOCK of a broken connection may arrive after UNLOCK. Then that server keeps the hold until
// its TTL is over, as it does for the LOCK of an acquisition. No other client has that owner.
#include <algorithm>
#include <cassert>

#include "client/algorithm/redlock.h"
#include "client/base/validity.h"

namespace holdfast::client {

size_t Redlock::breach() const {
  return config_.breach != 0 ? config_.breach : config_.servers + 1 - config_.quorum;
}

void Redlock::renew(TimeMs now, DurationMs ttl, bool heal) {
  assert(state_ == State::kHeld);
  assert(ttl.count >= 1 && ttl.count <= kMaxTtlMs);
  renewal_.reset();
  renewing_ = true;
  heals_ = heal;
  renew_ttl_ = ttl;
  renewed_until_ = validity(now, ttl);
  valid_until_ = std::min(valid_until_, renewed_until_);
  begin_round(Verb::kRenew, {"RENEW", key_, owner_, std::to_string(ttl.count)}, now);
  judge(now);
}

void Redlock::stop_renewing() {
  renewing_ = false;
  if (state_ == State::kHeld) forget_rounds();
}

// Judges the present round, also after its outcome is known: a late answer may show a server that needs
// healing, or that the hold is lost.
void Redlock::judge_renewal(TimeMs now) {
  if (!renewing_ && !renewal_) return;
  if (count_without() >= breach()) {
    end_renewal(Outcome::kExpired);
    return forget_rounds();
  }
  heal(now);
  if (!renewing_) return;
  const size_t yes = count(&ServerState::round, Vote::kYes);
  if (yes >= config_.quorum) {
    valid_until_ = renewed_until_;
    end_renewal(Outcome::kOk);
  } else if (yes + count(&ServerState::round, Vote::kPending) < config_.quorum) {
    end_renewal(why_not_renewed());
  }
}

size_t Redlock::count_without() const {
  return static_cast<size_t>(
      std::count_if(servers_.begin(), servers_.end(), [](const ServerState& s) { return s.without; }));
}

void Redlock::end_renewal(Outcome outcome) {
  renewing_ = false;
  renewal_ = result_for(outcome);
  if (outcome == Outcome::kBusy)
    renewal_->message = "too few servers have the hold; see each server's answer";
}

Outcome Redlock::why_not_renewed() const {
  if (count(&ServerState::round, Vote::kLost) > 0) return Outcome::kUnreachable;
  return count(&ServerState::round, Vote::kRefused) > 0 ? Outcome::kRefused : Outcome::kBusy;
}

// Sends LOCK to the servers without the hold. It waits until they are certainly too few to have granted the
// lock to another client.
void Redlock::heal(TimeMs now) {
  const auto unanswered = static_cast<size_t>(std::count_if(
      requests_.begin(), requests_.end(), [](const Request& r) { return r.verb == Verb::kRenew; }));
  if (count_without() + unanswered >= breach()) return;
  for (size_t server = 0; server < config_.servers; ++server) {
    if (servers_[server].to_heal) ask_heal(server, true, now);
  }
}

void Redlock::ask_heal(size_t server, bool hinted, TimeMs now) {
  servers_[server].to_heal = false;
  std::vector<std::string> argv = {"LOCK", key_, owner_, std::to_string(renew_ttl_.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  if (hinted) argv.insert(argv.end(), {"TOKEN", std::to_string(token_)});
  ask(Verb::kHeal, server, std::move(argv), saturating_add(now, config_.server_timeout));
  requests_.back().hinted = hinted;
  requests_.back().ttl = renew_ttl_;
}

void Redlock::answer_renew(const Request& request, const Reply& reply) {
  ServerState& server = servers_[request.server];
  server.round = note(request, reply);
  if (server.round == Vote::kYes && may_be_shortened(request.server)) server.round = Vote::kLost;
  if (server.round == Vote::kYes && may_be_session(request.server)) {  // the grant of a LOCK counts instead
    server.to_heal = heals_;
    server.round = heals_ ? Vote::kPending : Vote::kLost;
  }
  if (server.round != Vote::kNo) return;
  server.without = true;
  server.to_heal = heals_;
  if (heals_) server.round = Vote::kPending;
}

void Redlock::answer_heal(const Request& request, const Reply& reply, TimeMs now) {
  if (state_ != State::kHeld) {
    const bool kept = keeps_ && request.owner == owner_;  // the RENEW of release() follows it
    if (reply.kind == Reply::Kind::kGrant && !kept) unlock(request.server, request.owner);
    return;
  }
  if (request.id < round_from_) return;  // only answers of the present round count
  // The server's clock is far behind. The order of tokens needs no hint there, see above.
  if (request.hinted && is_of_far_hint(reply)) return ask_heal(request.server, false, now);
  ServerState& server = servers_[request.server];
  server.round = note(request, reply);
  if (server.round == Vote::kYes) {
    server.token = std::max(server.token, static_cast<uint64_t>(reply.number));
    server.lock = Vote::kYes;
    if (may_be_shortened(request.server)) server.round = Vote::kLost;
  } else if (reply.kind == Reply::Kind::kError && reply.text.starts_with("RECOVERING")) {
    server.round = Vote::kLost;  // as no answer: it grants the lock to no other client either
  }
}

// Whether an earlier LOCK of this hold may still arrive at the server and set a TTL shorter than this
// round's.
bool Redlock::may_be_shortened(size_t server) const {
  return std::any_of(requests_.begin(), requests_.end(), [&](const Request& r) {
    return r.makes_hold() && r.server == server && r.owner == owner_ && r.id < round_from_ &&
           r.ttl < renew_ttl_;
  });
}

// Whether the hold there may still be the SESSION hold of the wait, as no LOCK has taken it over yet: the
// server ends it with the connection of the wait.
bool Redlock::may_be_session(size_t server) const {
  return server == wait_server_ && owner_ == wait_owner_ && servers_[server].lock != Vote::kYes;
}

}  // namespace holdfast::client
