// Renewals of a hold. A round sends RENEW to every server of the key. A server without the hold gets LOCK
// in the same round, which heals it: same owner, mode and TTL, `TOKEN t`, no WAIT. A server that refuses
// this LOCK is left out until the next round.
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

namespace holdfast::client {

using redlock::Renewal;

size_t Redlock::breach() const {
  return config_.breach != 0 ? config_.breach : config_.servers + 1 - config_.quorum;
}

void Redlock::renew(TimeMs now, DurationMs ttl, bool heal) {
  assert(ttl.count >= 1 && ttl.count <= kMaxTtlMs);
  auto& held = std::get<Held>(phase_);
  const std::string owner = held.attempt.owner;
  Round round = begin_round(Verb::kRenew, owner, {"RENEW", key_, owner, std::to_string(ttl.count)}, now);
  held.renewal = Renewal{ttl,
                         validity(now, ttl),
                         heal,
                         std::move(round),
                         std::vector<bool>(config_.servers),
                         std::vector<bool>(config_.servers),
                         std::nullopt};
  held.valid_until = std::min(held.valid_until, held.renewal->valid_until);
  run_phase(now);
}

void Redlock::stop_renewing() {
  auto* held = std::get_if<Held>(&phase_);
  if (held == nullptr) return;
  held->renewal.reset();
  forget_rounds();
}

// Judges the present round, also after its outcome is known: a late answer may show that the hold is lost.
void Redlock::judge(Held& held) {
  if (!held.renewal) return;
  Renewal& renewal = *held.renewal;
  if (static_cast<size_t>(std::ranges::count(renewal.without, true)) >= breach()) {
    forget_rounds();
    return end_renewal(held, Outcome::kExpired);
  }
  if (renewal.result) return;
  const size_t yes = renewal.round.count(Vote::kYes);
  if (yes >= config_.quorum) {
    held.valid_until = renewal.valid_until;
    end_renewal(held, Outcome::kOk);
  } else if (yes + renewal.round.count(Vote::kPending) < config_.quorum) {
    const bool lost = renewal.round.count(Vote::kLost) > 0;
    const bool refused = renewal.round.count(Vote::kRefused) > 0;
    end_renewal(held, lost ? Outcome::kUnreachable : refused ? Outcome::kRefused : Outcome::kBusy);
  }
}

void Redlock::end_renewal(Held& held, Outcome outcome) {
  held.renewal->result = status_of(outcome, reports_);
  if (outcome == Outcome::kBusy)
    held.renewal->result->message = "too few servers have the hold; see each server's answer";
}

// Sends LOCK to the servers without the hold, also after the outcome of the round is known. It waits until
// they are certainly too few to have granted the lock to another client.
void Redlock::heal(Held& held, TimeMs now) {
  if (!held.renewal) return;
  const auto without = static_cast<size_t>(std::ranges::count(held.renewal->without, true));
  const auto unanswered = static_cast<size_t>(std::ranges::count(requests_, Verb::kRenew, &Request::verb));
  if (without + unanswered >= breach()) return;
  for (size_t server = 0; server < config_.servers; ++server) {
    if (held.renewal->to_heal[server]) ask_heal(held, server, true, now);
  }
}

void Redlock::ask_heal(Held& held, size_t server, bool hinted, TimeMs now) {
  held.renewal->to_heal[server] = false;
  const DurationMs ttl = held.renewal->ttl;
  std::vector<std::string> argv = {"LOCK", key_, held.attempt.owner, std::to_string(ttl.count)};
  argv.insert(argv.end(), mode_.begin(), mode_.end());
  if (hinted) argv.insert(argv.end(), {"TOKEN", std::to_string(held.token)});
  Request& request = ask(Verb::kHeal, server, held.attempt.owner, std::move(argv),
                         saturating_add(now, config_.server_timeout));
  request.hinted = hinted;
  request.ttl = ttl;
}

void Redlock::answer_renew(const Request& request, const Reply& reply) {
  if (auto* releasing = std::get_if<Releasing>(&phase_)) {
    releasing->round.votes[request.server] = note(request, reply);
    return;
  }
  auto& held = std::get<Held>(phase_);
  Vote& vote = held.renewal->round.votes[request.server];
  vote = note(request, reply);
  if (vote == Vote::kYes && may_be_shortened(held, request.server)) vote = Vote::kLost;
  if (vote != Vote::kNo) return;
  held.renewal->without[request.server] = true;
  held.renewal->to_heal[request.server] = held.renewal->heals;
  if (held.renewal->heals) vote = Vote::kPending;
}

void Redlock::answer_heal(const Request& request, const Reply& reply, TimeMs now) {
  auto* held = std::get_if<Held>(&phase_);
  if (held == nullptr) {
    if (reply.kind == Reply::Kind::kGrant && !keeps_hold_of(request.owner))
      unlock(request.server, request.owner);
    return;
  }
  if (!held->renewal || request.id < held->renewal->round.from)
    return;  // only answers of the present round
  // The server's clock is far behind. The order of tokens needs no hint there, see above.
  if (request.hinted && reply.error == ServerError::kAhead)
    return ask_heal(*held, request.server, false, now);
  Vote& vote = held->renewal->round.votes[request.server];
  vote = note(request, reply);
  if (vote == Vote::kYes) {
    Attempt::Server& server = held->attempt.servers[request.server];
    server.token = std::max(server.token, static_cast<uint64_t>(reply.number));
    server.lock = Vote::kYes;
    if (may_be_shortened(*held, request.server)) vote = Vote::kLost;
  } else if (reply.error == ServerError::kRecovering) {
    vote = Vote::kLost;  // as no answer: it grants the lock to no other client either
  }
}

// Whether an earlier LOCK of this hold may still arrive at the server and set a TTL shorter than this
// round's.
bool Redlock::may_be_shortened(const Held& held, size_t server) const {
  return std::ranges::any_of(requests_, [&](const Request& r) {
    return r.makes_hold() && r.server == server && r.owner == held.attempt.owner &&
           r.id < held.renewal->round.from && r.ttl < held.renewal->ttl;
  });
}

}  // namespace holdfast::client
