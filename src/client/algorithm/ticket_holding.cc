// The phase Holding (C7): confirming the votes, renewals, and repair of the hold on servers without it.
//
// The quorum's votes are the lock, but they are short. So soon after the acquisition a round of RENEW
// confirms them, for the TTL. Each later renewal is such a round, too. It goes to the servers that have the
// hold, as far as known. The other servers get the wait again, with the hold's ticket and token, and their
// vote is then confirmed, as the others were. They are repaired only when other clients cannot have had the
// lock meanwhile: if too many servers are without the hold, it is lost. renewal() says so at once, but the
// other servers keep the hold until its validity ends or release() is called: the user may rely on a
// validity that it has read before, and the servers without the hold may not grant the lock yet.
//
// Why no other client holds the lock meanwhile: each server of a confirmed round keeps the hold until after
// the validity that counts from the round's beginning, and the next round is confirmed before that ends.
// Any other quorum shares a server with that one. Tokens stay in order, as the token stays that of the
// acquisition.
#include <algorithm>
#include <cassert>

#include "client/algorithm/ticket_wait.h"

namespace holdfast::client {

namespace {

size_t count(const std::vector<bool>& of) {
  return static_cast<size_t>(std::count(of.begin(), of.end(), true));
}

}  // namespace

void TicketWait::renew(TimeUs now, DurationMs ttl, bool repair) {
  auto& holding = std::get<Holding>(phase_);
  assert(ttl.count >= 1 && ttl.count <= kMaxTtlMs);
  if (holding.is_lost()) return;
  holding.renewal.reset();
  holding.report_at = now + config_.server_timeout;
  begin_round(holding, ttl, repair, now);
}

void TicketWait::begin_round(Holding& holding, DurationMs ttl, bool repairs, TimeUs now) {
  holding.confirm_at = kNeverUs;
  const std::vector<bool> none(config_.servers, false);
  Holding::Round round{ttl, now, now + repeat_pause(), none, none, none, repairs};
  for (size_t server = 0; server < config_.servers; ++server)
    round.without[server] = !holding.attempt.ballot.has(server);
  holding.round = std::move(round);
  if (count(holding.round->without) >= config_.breach) return lose(holding);
  for (size_t server = 0; server < config_.servers; ++server) {
    if (holding.attempt.ballot.has(server)) renew_at(holding, server, now);
  }
}

DurationUs TicketWait::repeat_pause() const { return std::max(config_.times.silence, quorum_rtt() * 3); }

// Asks the servers again that have not confirmed. Their answers to the requests before still count: on a
// busy machine they may take longer than the pause.
void TicketWait::repeat_round(Holding& holding, TimeUs now) {
  holding.round->repeat_at = now + repeat_pause();
  for (size_t server = 0; server < config_.servers; ++server) ask_again(holding, server, now);
}

// A confirmed vote is not asked for again. The user may rely on the validity of a lost hold: no other
// client gets its votes.
void TicketWait::inquired(Holding& holding, size_t server, TimeUs now) {
  if (!holding.is_lost() && !holding.ended[server]) renew_at(holding, server, now);
}

// A vote of a repair has a token of its own, which may be larger than the hold's.
void TicketWait::renew_at(Holding& holding, size_t server, TimeUs now) {
  const DurationMs ttl = holding.round ? holding.round->ttl : config_.ttl;
  const uint64_t token = std::max(holding.token, holding.attempt.ballot.token(server));
  ask(server, RenewRequest{holding.attempt.owner, ttl, token}, now);
}

void TicketWait::repair_at(Holding& holding, size_t server, TimeUs now) {
  holding.ended[server] = false;
  holding.repair_at[server] = now;
  ticket_.hint = holding.token;
  ticket_.provisional = false;
  wait_at(holding.attempt, server, now);
}

// What was sent over the former connection may be lost.
void TicketWait::ask_again(Holding& holding, size_t server, TimeUs now) {
  if (!holding.round || holding.is_lost()) return;
  if (!holding.attempt.ballot.has(server)) {
    if (may_repair(holding)) repair_at(holding, server, now);
  } else if (!holding.round->yes[server]) {
    renew_at(holding, server, now);
  }
}

bool TicketWait::lacks_hold(const Holding& holding) const {
  return holding.round && !holding.is_lost() && count(holding.round->without) > 0;
}

// --- answers ---

void TicketWait::answered(Holding& holding, const Asked& asked, const Answer& answer, TimeUs now) {
  if (is_due(holding.valid_until, now)) return end(Outcome::kExpired, now);  // no answer revives it
  if (const auto* renew = std::get_if<RenewRequest>(&asked.request)) {
    if (renew->owner == holding.attempt.owner) answered_renew(holding, asked, answer, now);
    return;
  }
  const auto* request = std::get_if<WaitRequest>(&asked.request);
  const auto* wait = std::get_if<WaitAnswer>(&answer);
  if (request == nullptr || request->owner != holding.attempt.owner || wait == nullptr) return;
  if (wait->state != WaitAnswer::State::kQueued) record_hold(holding, asked.server, wait->token, now);
}

void TicketWait::voted(Holding& holding, size_t server, const VotePush& vote, TimeUs now) {
  record_hold(holding, server, vote.token, now);
}

// A vote that came late, or that repairs the hold. The first round confirms it with the others. A vote in
// place of another one means that the hold has ended on the server, by force or because it was not
// confirmed in time: another client may have had the lock since. Such a vote expires, unless a repair
// confirms it.
void TicketWait::record_hold(Holding& holding, size_t server, uint64_t token, TimeUs now) {
  Ballot& ballot = holding.attempt.ballot;
  if (ballot.has_yielded(server, token))
    return ask(server, YieldRequest{holding.attempt.owner, token}, now);
  if (ballot.token(server) == token) return;
  if (ballot.has(server) || holding.ended[server]) return record_end(holding, server, now);
  ballot.record(server, token, now);
  if (holding.round && !holding.is_lost()) renew_at(holding, server, now);
}

// The hold has ended on the server. It may have given this client another vote.
void TicketWait::record_end(Holding& holding, size_t server, TimeUs now) {
  holding.attempt.ballot.drop(server);
  holding.ended[server] = true;
  if (!holding.round || holding.is_lost()) return;
  holding.round->without[server] = true;
  holding.round->yes[server] = false;
  judge(holding, now);
}

void TicketWait::answered_renew(Holding& holding, const Asked& asked, const Answer& answer, TimeUs now) {
  const auto* number = std::get_if<Count>(&answer);
  const auto* refusal = std::get_if<Refusal>(&answer);
  const bool over = refusal != nullptr && refusal->code == Refusal::Code::kOver;
  if (number == nullptr && !over) return record_failure(holding, asked);
  const auto& request = std::get<RenewRequest>(asked.request);
  const uint64_t token =
      number != nullptr && number->number > 0 ? static_cast<uint64_t>(number->number) : 0;
  if (asked.at < holding.repair_at[asked.server]) return;  // from before the hold ended there
  Ballot& ballot = holding.attempt.ballot;
  if (token == 0 || token > std::max(request.token, ballot.token(asked.server)))
    return record_end(holding, asked.server, now);
  ballot.record(asked.server, token, asked.at);
  if (holding.is_lost()) return;
  if (token > request.token) return renew_at(holding, asked.server, now);  // nothing was changed there
  if (!holding.round || asked.at < holding.round->begun) return;
  holding.round->without[asked.server] = false;
  holding.round->yes[asked.server] = request.ttl >= holding.round->ttl;
  judge(holding, now);
}

void TicketWait::record_failure(Holding& holding, const Asked& asked) {
  if (!holding.round || asked.at < holding.round->begun) return;
  holding.round->failed[asked.server] = true;
  report_if_hopeless(holding);
}

// If too few servers can confirm the renewal, it fails now, not at the timeout. The round goes on.
void TicketWait::report_if_hopeless(Holding& holding) {
  if (holding.report_at == kNeverUs) return;
  const Holding::Round& round = *holding.round;
  size_t hopeless = 0;
  for (size_t server = 0; server < config_.servers; ++server) {
    const bool cannot = round.failed[server] || (round.without[server] && !round.repairs);
    hopeless += cannot && !round.yes[server] ? 1 : 0;
  }
  if (hopeless <= config_.servers - config_.quorum) return;
  holding.report_at = kNeverUs;
  holding.renewal = Outcome::kUnreachable;
}

void TicketWait::judge(Holding& holding, TimeUs now) {
  Holding::Round& round = *holding.round;
  if (count(round.without) >= config_.breach) return lose(holding);
  if (count(round.yes) >= config_.quorum) {
    holding.valid_until =
        std::max(holding.valid_until, client::valid_until(round.begun, us_of(round.ttl), config_.drift));
    holding.confirmed = true;
    holding.remember = round.yes;
    holding.renewal = Outcome::kOk;
    holding.report_at = round.repeat_at = kNeverUs;
  }
  for (size_t server = 0; server < config_.servers; ++server) {
    if (may_repair(holding) && !holding.attempt.ballot.has(server) &&
        holding.repair_at[server] < round.begun)
      repair_at(holding, server, now);
  }
  report_if_hopeless(holding);
}

void TicketWait::lose(Holding& holding) {
  holding.renewal = Outcome::kExpired;
  holding.confirm_at = holding.report_at = holding.round->repeat_at = kNeverUs;
}

// Whether so many servers have the hold that no other client has acquired the lock. A server that has
// confirmed it in the last round with a quorum keeps it until after the present validity, also while it is
// down, unless it has lost its data.
bool TicketWait::may_repair(const Holding& holding) const {
  const Holding::Round& round = *holding.round;
  size_t known = 0;
  for (size_t server = 0; server < config_.servers; ++server) {
    const bool had = holding.confirmed && holding.remember[server];
    known += round.yes[server] || (had && !round.without[server]) ? 1 : 0;
  }
  return round.repairs && known >= config_.breach;
}

// --- deadlines ---

void TicketWait::run(Holding& holding, TimeUs now) {
  if (is_due(holding.valid_until, now)) return end(Outcome::kExpired, now);
  if (is_due(holding.report_at, now)) {
    holding.report_at = kNeverUs;
    holding.renewal = Outcome::kUnreachable;
  }
  if (is_due(holding.confirm_at, now)) begin_round(holding, config_.ttl, true, now);
  if (!holding.round || !is_due(holding.round->repeat_at, now)) return;
  if (now - holding.round->begun < us_of(holding.round->ttl) / 4) return repeat_round(holding, now);
  begin_round(holding, holding.round->ttl, holding.round->repairs, now);
}

TimeUs TicketWait::next_deadline(const Holding& holding) const {
  const TimeUs repeat_at = holding.round ? holding.round->repeat_at : kNeverUs;
  return std::min({holding.valid_until, holding.report_at, holding.confirm_at, repeat_at});
}

}  // namespace holdfast::client
