// The phases Parked (C6) and Releasing.
#include <algorithm>

#include "client/algorithm/ticket_wait.h"

namespace holdfast::client {

// Returns when a quorum is live again, and has been for a while: for longer after each parking, as a client
// that comes and goes costs the others time.
void TicketWait::run(Parked& parked, TimeUs now) {
  if (is_due(wait_until_, now)) return end(Outcome::kTimeout, now);
  const DurationUs live = live_span();
  parked.look_at = now + live / 4;
  if (!is_live(now, live * 3)) {
    parked.live_since.reset();
    return;
  }
  if (!parked.live_since) parked.live_since = now;
  const auto doubled = static_cast<int>(std::min(slot_.parkings, 16.0));
  const DurationUs pause =
      std::min(config_.times.return_first * (int64_t{1} << doubled), config_.times.return_most);
  if (now - *parked.live_since >= pause && is_live(now, live)) begin_attempt(now);
}

TimeUs TicketWait::next_deadline(const Parked& parked) const {
  return std::min(wait_until_, parked.look_at);
}

void TicketWait::ask_again(Releasing& releasing, size_t server, TimeUs now) {
  releasing.repeated[server] = true;
  unlock_again(server, now);
}

// A repeated UNLOCK finds no hold where the first one has ended it.
void TicketWait::answered(Releasing& releasing, const Asked& asked, const Answer& answer, TimeUs now) {
  const auto* unlock = std::get_if<UnlockRequest>(&asked.request);
  if (unlock == nullptr || unlock->owner != slot_.owner()) return;
  if (const auto* count = std::get_if<Count>(&answer)) {
    const bool before = releasing.released[asked.server].value_or(false);
    releasing.released[asked.server] = before || count->number > 0 || releasing.repeated[asked.server];
  }
  run(releasing, now);
}

// A server that does not answer gets UNLOCK again over its next connection, until what it has must have
// expired.
void TicketWait::run(Releasing& releasing, TimeUs now) {
  const auto count = [&](std::optional<bool> of) {
    return static_cast<size_t>(std::count(releasing.released.begin(), releasing.released.end(), of));
  };
  const size_t released = count(true);
  const size_t unknown = count(std::nullopt);
  if (!releasing.outcome) {
    if (released >= config_.quorum) {
      releasing.outcome = Outcome::kOk;
    } else if (released + unknown < config_.quorum) {
      releasing.outcome = Outcome::kExpired;
    } else if (is_due(releasing.report_at, now)) {
      releasing.outcome = Outcome::kUnreachable;
    }
  }
  const bool all_told = std::find(slot_.told.begin(), slot_.told.end(), false) == slot_.told.end();
  if (!releasing.outcome || !(all_told || is_due(releasing.give_up_at, now))) return;
  const Outcome outcome = *releasing.outcome;
  phase_ = Over{outcome};
}

TimeUs TicketWait::next_deadline(const Releasing& releasing) const {
  return releasing.outcome ? releasing.give_up_at : std::min(releasing.report_at, releasing.give_up_at);
}

}  // namespace holdfast::client
