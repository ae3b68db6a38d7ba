// The phase Waiting: rules C1 to C5, and when it ends by parking (C6).
#include <algorithm>
#include <cassert>

#include "client/algorithm/ticket_wait.h"

namespace holdfast::client {

namespace {

constexpr DurationUs kNudge{2000};
// Without votes the wait is repeated after so many heartbeats. Only a fault makes that necessary.
constexpr int64_t kBeats = 5;

DurationUs refresh_span(const Attempt& attempt) {
  return std::min(attempt.vote / 3, DurationUs{attempt.live.count * 2 / 5});
}

}  // namespace

// C5: with votes, the wait goes to all servers again and again: it extends the votes, and shows which
// servers are live. Without votes heartbeats are enough.
void TicketWait::wait_at(Attempt& attempt, size_t server, TimeUs now) {
  WaitRequest request;
  request.owner = attempt.owner;
  request.life = ms_of(attempt.vote);
  request.ticket = ticket_.time;
  request.hint = ticket_.refuses_hint[server] ? 0 : ticket_.hint;
  request.has = attempt.ballot.token(server);
  request.seen = pulses_[server].server_time();
  request.provisional = ticket_.provisional;
  request.over = slot_.over.take_for(server);
  attempt.refresh_at[server] =
      now + (attempt.ballot.empty() ? config_.times.heartbeat * kBeats : refresh_span(attempt));
  ask(server, std::move(request), now);
}

void TicketWait::wait_everywhere(Attempt& attempt, TimeUs now) {
  for (size_t server = 0; server < config_.servers; ++server) wait_at(attempt, server, now);
}

// What was sent over the former connection may be lost.
void TicketWait::ask_again(Waiting& waiting, size_t server, TimeUs now) {
  wait_at(waiting.attempt, server, now);
  raise_at(waiting, server, now);
}

// --- answers ---

void TicketWait::answered(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now) {
  if (const auto* wait = std::get_if<WaitRequest>(&asked.request)) {
    if (wait->owner != waiting.attempt.owner) return;
    answered_wait(waiting, asked, answer, now);
  } else if (const auto* renew = std::get_if<RenewRequest>(&asked.request)) {
    if (renew->owner == waiting.attempt.owner) answered_raise(waiting, asked, answer, now);
  }
}

void TicketWait::answered_wait(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now) {
  const size_t server = asked.server;
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return refused(waiting, asked, *refusal, now);
  const auto* wait = std::get_if<WaitAnswer>(&answer);
  if (wait == nullptr) return;
  waiting.refused[server].reset();
  if (wait->state == WaitAnswer::State::kQueued) {
    waiting.refused[server] = Outcome::kBusy;
    waiting.attempt.ballot.drop(server);
  } else {
    record_vote(waiting, server, wait->token, wait->since, now);
  }
  judge(waiting, now);
  record_floor(server, wait->floor, now);
}

void TicketWait::refused(Waiting& waiting, const Asked& asked, const Refusal& refusal, TimeUs now) {
  const size_t server = asked.server;
  if (refusal.code == Refusal::Code::kOver) return begin_attempt(now);
  if (refusal.code == Refusal::Code::kDeadlock) return end(Outcome::kDeadlock, now);
  const bool hinted = std::get<WaitRequest>(asked.request).hint != 0;
  if (refusal.code == Refusal::Code::kAhead && hinted) {
    ticket_.refuses_hint[server] = true;
    return wait_at(waiting.attempt, server, now);
  }
  waiting.refused[server] = outcome_of(refusal);
  if (refusal.code == Refusal::Code::kAhead && lower_ticket(server, now)) return;
  // A connection that broke is reported as a new one, which repeats the request.
  if (refusal.code != Refusal::Code::kLost)
    waiting.attempt.refresh_at[server] =
        std::min(waiting.attempt.refresh_at[server], now + config_.times.heartbeat);
  judge(waiting, now);
}

// This client's clock is far ahead of the servers': the ticket follows their floors alone. Returns false if
// a quorum may accept the ticket.
bool TicketWait::lower_ticket(size_t server, TimeUs now) {
  ticket_.floors[server].reset();
  ticket_.refuses[server] = true;
  const auto refusing =
      static_cast<size_t>(std::count(ticket_.refuses.begin(), ticket_.refuses.end(), true));
  if (refusing <= config_.servers - config_.quorum || ticket_.time == slot_.floor + 1) return false;
  ticket_.time = slot_.floor + 1;
  ticket_.hint = 0;
  ticket_.fixed = false;
  ticket_.provisional = true;
  std::fill(ticket_.floors.begin(), ticket_.floors.end(), std::nullopt);
  ticket_.refuses.assign(config_.servers, false);
  unlock_everywhere(now);
  begin_attempt(now);
  return true;
}

void TicketWait::voted(Waiting& waiting, size_t server, const VotePush& vote, TimeUs now) {
  record_vote(waiting, server, vote.token, vote.since, now);
  judge(waiting, now);
}

void TicketWait::record_vote(Waiting& waiting, size_t server, uint64_t token, TimeMs since, TimeUs now) {
  Attempt& attempt = waiting.attempt;
  if (attempt.ballot.has_yielded(server, token))
    return ask(server, YieldRequest{attempt.owner, token}, now);
  const std::optional<Pulse::Pair>& pair = pulses_[server].pair();
  attempt.ballot.record(server, token, pair ? not_after(*pair, since, config_.drift) : kLongAgoUs);
  if (!attempt.ballot.counts(server, now)) {  // too old: the wait extends it
    attempt.refresh_at[server] = std::min(attempt.refresh_at[server], now + kNudge);
  } else {
    attempt.refresh_at[server] = std::min(attempt.refresh_at[server], now + refresh_span(attempt));
  }
}

void TicketWait::answered_raise(Waiting& waiting, const Asked& asked, const Answer& answer, TimeUs now) {
  const auto* count = std::get_if<Count>(&answer);
  if (count == nullptr) return;
  Ballot& ballot = waiting.attempt.ballot;
  const uint64_t token = count->number > 0 ? static_cast<uint64_t>(count->number) : 0;
  if (token == 0) {
    ballot.drop(asked.server);
  } else if (token > std::get<RenewRequest>(asked.request).token) {
    ballot.supersede(asked.server, token);  // the server has extended nothing
  } else {
    ballot.record(asked.server, token, asked.at);
  }
  judge(waiting, now);
}

// C1: a Lamport clock. Any two majorities share a server, so a ticket that is larger than the floors of a
// majority is larger than each ticket that was fixed before it.
void TicketWait::record_floor(size_t server, uint64_t floor, TimeUs now) {
  if (ticket_.fixed || tries_once()) return;
  auto* waiting = std::get_if<Waiting>(&phase_);
  if (!ticket_.floors[server]) ticket_.floors[server] = floor;
  const auto known = static_cast<size_t>(std::count_if(ticket_.floors.begin(), ticket_.floors.end(),
                                                       [](const auto& f) { return f.has_value(); }));
  if (known <= config_.servers / 2) return;
  uint64_t largest = 0;
  for (const auto& f : ticket_.floors) largest = std::max(largest, f.value_or(0));
  ticket_.fixed = true;
  const bool final_ticket_unknown = std::exchange(ticket_.provisional, false);
  slot_.clock_is_late = largest >= ticket_.time;
  if (slot_.clock_is_late) ticket_.time = largest + 1;
  if (waiting != nullptr && (final_ticket_unknown || slot_.clock_is_late))
    wait_everywhere(waiting->attempt, now);
}

// C4. The vote must not count here any more, even if the server never gets the YIELD.
void TicketWait::inquired(Waiting& waiting, size_t server, uint64_t token, TimeUs now) {
  Attempt& attempt = waiting.attempt;
  if (waiting.raising && attempt.ballot.has(server))
    return ask(server, RenewRequest{attempt.owner, ms_of(attempt.vote), attempt.ballot.token(server)}, now);
  attempt.ballot.yield(server, token);
  ask(server, YieldRequest{attempt.owner, token}, now);
  judge(waiting, now);
}

// --- what follows ---

// The last statement of each caller: the phase may be another one after it.
void TicketWait::judge(Waiting& waiting, TimeUs now) {
  Attempt& attempt = waiting.attempt;
  if (const std::optional<Ballot::Win> win = attempt.ballot.win(now)) return hold(*win, now);
  if (attempt.ballot.empty()) {
    waiting.first_vote.reset();
    waiting.nudge_at = kNeverUs;
  } else if (!waiting.first_vote) {
    waiting.first_vote = now;
    waiting.nudge_at = now + std::max(kNudge, quorum_rtt() * 3 / 2);
  }
  const std::optional<uint64_t> token = attempt.ballot.reachable_token(now);
  if (token) return raise_tokens(waiting, *token, now);
  if (waiting.raising) return give_up_attempt(now);
  if (tries_once() && is_hopeless(waiting)) end(why_not_acquired(waiting), now);
}

void TicketWait::raise_tokens(Waiting& waiting, uint64_t token, TimeUs now) {
  if (waiting.raising && waiting.raising->token == token && !is_due(waiting.raising->repeat_at, now))
    return;
  const DurationUs pause = std::max(config_.times.silence, quorum_rtt() * 3);
  waiting.raising = Waiting::Raising{token, now + pause};
  for (size_t server = 0; server < config_.servers; ++server) {
    if (waiting.attempt.ballot.counts(server, now)) raise_at(waiting, server, now);
  }
}

void TicketWait::raise_at(Waiting& waiting, size_t server, TimeUs now) {
  const Attempt& attempt = waiting.attempt;
  if (!waiting.raising || !attempt.ballot.has(server)) return;
  const uint64_t token = waiting.raising->token;
  if (attempt.ballot.token(server) < token)
    ask(server, RenewRequest{attempt.owner, ms_of(attempt.vote), token}, now);
}

// Some votes are confirmed, but are no quorum any more. No server asks for them, so all are given back, and
// the next attempt keeps the ticket.
void TicketWait::give_up_attempt(TimeUs now) {
  unlock_everywhere(now);
  begin_attempt(now);
}

// Whether a single try cannot succeed any more.
bool TicketWait::is_hopeless(const Waiting& waiting) const {
  const auto voting =
      static_cast<size_t>(std::count(waiting.refused.begin(), waiting.refused.end(), std::nullopt));
  return voting < config_.quorum;
}

Outcome TicketWait::why_not_acquired(const Waiting& waiting) const {
  for (const Outcome outcome : {Outcome::kBusy, Outcome::kRefused}) {
    if (std::find(waiting.refused.begin(), waiting.refused.end(), outcome) != waiting.refused.end())
      return outcome;
  }
  return Outcome::kUnreachable;
}

// --- deadlines ---

void TicketWait::run(Waiting& waiting, TimeUs now) {
  if (is_due(wait_until_, now))
    return end(tries_once() ? why_not_acquired(waiting) : Outcome::kTimeout, now);
  if (is_due(park_at(waiting), now)) return park(now);
  Attempt& attempt = waiting.attempt;
  if (is_due(waiting.nudge_at, now)) {
    waiting.nudge_at = kNeverUs;
    for (size_t server = 0; server < config_.servers; ++server) {
      if (!attempt.ballot.has(server)) wait_at(attempt, server, now);
    }
  }
  for (size_t server = 0; server < config_.servers; ++server) {
    if (is_due(attempt.refresh_at[server], now)) wait_at(attempt, server, now);
  }
  if (waiting.raising) judge(waiting, now);
}

// C6. With votes the client knows within X whether a quorum is live, and others wait for it. Without votes
// it sends only heartbeats, and is in nobody's way.
TimeUs TicketWait::park_at(const Waiting& waiting) const {
  if (tries_once()) return kNeverUs;
  const DurationUs live = waiting.attempt.live;
  const TimeUs heard = std::max(heard_by_quorum(), waiting.since);
  const TimeUs without = heard + (config_.times.heartbeat * 2 + live);
  if (!waiting.first_vote) return without;
  const DurationUs span = live * 3 / 2;
  return std::min(without, std::max(heard, *waiting.first_vote) + span);
}

TimeUs TicketWait::next_deadline(const Waiting& waiting) const {
  TimeUs next = std::min({wait_until_, park_at(waiting), waiting.nudge_at});
  for (const TimeUs at : waiting.attempt.refresh_at) next = std::min(next, at);
  return waiting.raising ? std::min(next, waiting.raising->repeat_at) : next;
}

}  // namespace holdfast::client
