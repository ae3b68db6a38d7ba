// The phase Keeping: the lock is released, but stays taken until a certain time. UNLOCK would let the next
// client in at once, so the hold stays. It is shortened, in case this client ends before that time. No
// server is told before that the attempt is over, as it would tell the others.
#include <algorithm>

#include "client/algorithm/ticket_wait.h"

namespace holdfast::client {

void TicketWait::keep(TimeUs until, TimeUs now) {
  Attempt attempt = std::move(std::get<Holding>(phase_).attempt);
  const uint64_t token = std::get<Holding>(phase_).token;
  phase_ = Keeping{std::move(attempt),
                   token,
                   until,
                   now + config_.server_timeout,
                   std::vector<bool>(config_.servers, false),
                   std::nullopt};
  auto& keeping = std::get<Keeping>(phase_);
  for (size_t server = 0; server < config_.servers; ++server) shorten_at(keeping, server, now);
}

// RENEW with the token confirms a vote, which could be asked for otherwise. Only RENEW without a token
// shortens.
void TicketWait::shorten_at(Keeping& keeping, size_t server, TimeUs now) {
  const Ballot& ballot = keeping.attempt.ballot;
  if (!ballot.has(server) || keeping.yes[server]) return;
  const DurationMs rest = ms_of(keeping.until - now);
  ask(server, RenewRequest{keeping.attempt.owner, rest, std::max(keeping.token, ballot.token(server))},
      now);
  ask(server, RenewRequest{keeping.attempt.owner, rest, 0}, now);
}

void TicketWait::voted(Keeping& keeping, size_t server, const VotePush& vote, TimeUs now) {
  keeping.attempt.ballot.record(server, vote.token, now);
  shorten_at(keeping, server, now);
}

void TicketWait::answered(Keeping& keeping, const Asked& asked, const Answer& answer, TimeUs now) {
  const auto* renew = std::get_if<RenewRequest>(&asked.request);
  const auto* count = std::get_if<Count>(&answer);
  if (renew == nullptr || count == nullptr || renew->owner != keeping.attempt.owner || renew->token != 0)
    return;
  keeping.yes[asked.server] = count->number > 0;
  const auto yes = static_cast<size_t>(std::count(keeping.yes.begin(), keeping.yes.end(), true));
  if (yes >= config_.quorum) keeping.outcome = Outcome::kOk;
  run(keeping, now);
}

void TicketWait::run(Keeping& keeping, TimeUs now) {
  if (!keeping.outcome && is_due(keeping.report_at, now)) keeping.outcome = Outcome::kUnreachable;
  if (is_due(keeping.until, now)) end(keeping.outcome.value_or(Outcome::kUnreachable), now);
}

TimeUs TicketWait::next_deadline(const Keeping& keeping) const {
  return keeping.outcome ? keeping.until : std::min(keeping.until, keeping.report_at);
}

}  // namespace holdfast::client
