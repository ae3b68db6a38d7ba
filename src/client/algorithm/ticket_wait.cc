// The ways in, the changes of phase, and what all phases use.
#include "client/algorithm/ticket_wait.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace holdfast::client {

namespace {

constexpr uint64_t kMaxTicket = kMaxToken;
// After an acquisition. If each one ended more, a client that comes and goes would return at once whenever
// it had got the lock, and the others would wait for its votes again.
constexpr double kParkingsLeft = 7.0 / 8;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

uint64_t one_above(uint64_t number) { return std::min(number + 1, kMaxTicket); }

}  // namespace

TicketWait::TicketWait(TicketConfig config, TicketSlot& slot, Pulses pulses)
    : config_(std::move(config)), slot_(slot), pulses_(std::move(pulses)) {
  assert(pulses_.size() == config_.servers && config_.quorum >= 1 && config_.quorum <= config_.servers);
  if (config_.breach == 0) config_.breach = config_.servers + 1 - config_.quorum;
}

// --- the ways in ---

void TicketWait::acquire(TimeUs now, uint64_t clock_us) {
  assert(state() == State::kIdle);
  ticket_.time = std::min(std::max(clock_us, one_above(slot_.floor)), kMaxTicket);
  ticket_.hint = std::min(std::max(clock_us, one_above(slot_.token)), kMaxTicket);
  ticket_.provisional = slot_.clock_is_late || tries_once();
  ticket_.floors.resize(config_.servers);
  ticket_.refuses_hint.assign(config_.servers, false);
  ticket_.refuses.assign(config_.servers, false);
  if (config_.limit) wait_until_ = now + (tries_once() ? config_.server_timeout : *config_.limit);
  begin_attempt(now);
}

void TicketWait::on_answer(const Asked& asked, const Answer& answer, TimeUs now) {
  if (const auto* wait = std::get_if<WaitAnswer>(&answer))
    learn(asked.server, wait->token, wait->floor, wait->over);
  if (std::holds_alternative<UnlockRequest>(asked.request) && std::holds_alternative<Count>(answer))
    record_told(asked);
  std::visit(Overloaded{[&](Waiting& phase) { answered(phase, asked, answer, now); },
                        [&](Holding& phase) { answered(phase, asked, answer, now); },
                        [&](Keeping& phase) { answered(phase, asked, answer, now); },
                        [&](Releasing& phase) { answered(phase, asked, answer, now); }, [](auto&) {}},
             phase_);
}

void TicketWait::on_push(size_t server, const Push& push, TimeUs now) {
  const auto* vote = std::get_if<VotePush>(&push);
  if (vote != nullptr) learn(server, vote->token, vote->floor, vote->over);
  const std::string& owner = vote != nullptr ? vote->owner : std::get<InquirePush>(push).owner;
  if (!has_attempt() || owner != slot_.owner()) return disown(server, owner, now);
  if (vote != nullptr) {
    std::visit(Overloaded{[&](Waiting& phase) { voted(phase, server, *vote, now); },
                          [&](Holding& phase) { voted(phase, server, *vote, now); },
                          [&](Keeping& phase) { voted(phase, server, *vote, now); }, [](auto&) {}},
               phase_);
    return;
  }
  const uint64_t token = std::get<InquirePush>(push).token;
  std::visit(Overloaded{[&](Waiting& phase) { inquired(phase, server, token, now); },
                        [&](Holding& phase) { inquired(phase, server, now); },
                        [&](Keeping& phase) { shorten_at(phase, server, now); }, [](auto&) {}},
             phase_);
}

void TicketWait::on_connection(size_t server, TimeUs now) {
  slot_.over.forget(server);
  ask_again(server, now);
}

void TicketWait::on_restart(size_t server, TimeUs now) {
  slot_.over.forget(server);
  if (auto* holding = std::get_if<Holding>(&phase_); holding != nullptr && holding->round)
    holding->round->yes[server] = false;  // it may have lost the hold
  ask_again(server, now);
}

// What was sent before may be lost.
void TicketWait::ask_again(size_t server, TimeUs now) {
  std::visit(Overloaded{[&](Waiting& phase) { ask_again(phase, server, now); },
                        [&](Holding& phase) { ask_again(phase, server, now); },
                        [&](Keeping& phase) { shorten_at(phase, server, now); },
                        [&](Parked&) { unlock_again(server, now); },
                        [&](Releasing& phase) { ask_again(phase, server, now); }, [](auto&) {}},
             phase_);
}

void TicketWait::on_time(TimeUs now) {
  std::visit(Overloaded{[&](Waiting& phase) { run(phase, now); }, [&](Parked& phase) { run(phase, now); },
                        [&](Holding& phase) { run(phase, now); }, [&](Keeping& phase) { run(phase, now); },
                        [&](Releasing& phase) { run(phase, now); }, [](auto&) {}},
             phase_);
}

TimeUs TicketWait::next_deadline() const {
  return std::visit(Overloaded{[&](const Waiting& phase) { return next_deadline(phase); },
                               [&](const Parked& phase) { return next_deadline(phase); },
                               [&](const Holding& phase) { return next_deadline(phase); },
                               [&](const Keeping& phase) { return next_deadline(phase); },
                               [&](const Releasing& phase) { return next_deadline(phase); },
                               [](const auto&) { return kNeverUs; }},
                    phase_);
}

// --- changes of phase ---

void TicketWait::begin_attempt(TimeUs now) {
  ++slot_.attempt;
  slot_.told.assign(config_.servers, true);
  const DurationUs trip = quorum_rtt();
  const DurationUs ttl = us_of(config_.ttl);
  const DurationUs usual = std::min(config_.times.vote, ttl / 2);
  // In whole milliseconds, as on the wire.
  const DurationUs vote{std::max<int64_t>(std::min(ttl, std::max(usual, trip * 6)).count / 1000, 1) * 1000};
  Attempt attempt{slot_.owner(), Ballot({config_.servers, config_.quorum, vote, config_.drift}), vote,
                  live_span(), std::vector<TimeUs>(config_.servers, kNeverUs)};
  phase_ = Waiting{std::move(attempt), now,          std::nullopt,
                   kNeverUs,           std::nullopt, std::vector<std::optional<Outcome>>(config_.servers)};
  for (size_t server = 0; server < config_.servers; ++server)
    wait_at(std::get<Waiting>(phase_).attempt, server, now);
}

// C6: other clients must not wait for a client that cannot acquire. It keeps its ticket.
void TicketWait::park(TimeUs now) {
  unlock_everywhere(now);
  slot_.parkings += 1;
  phase_ = Parked{std::nullopt, now + live_span() / 4};
}

void TicketWait::hold(const Ballot::Win& win, TimeUs now) {
  Attempt attempt = std::move(std::get<Waiting>(phase_).attempt);
  slot_.parkings *= kParkingsLeft;
  phase_ = Holding{std::move(attempt),
                   win.token,
                   now,
                   win.until,
                   now + config_.times.confirm,
                   std::vector<bool>(config_.servers, false),
                   std::vector<TimeUs>(config_.servers, kLongAgoUs)};
}

void TicketWait::release(TimeUs now, DurationUs at_least) {
  const auto* holding = std::get_if<Holding>(&phase_);
  if (state() == State::kKeeping) return;
  if (holding == nullptr) return end(Outcome::kCancelled, now);
  if (holding->is_lost()) return end(Outcome::kExpired, now);
  const TimeUs until = holding->since + at_least;
  is_due(until, now) ? end(Outcome::kOk, now) : keep(until, now);
}

void TicketWait::end(Outcome outcome, TimeUs now) {
  if (state() == State::kReleasing || state() == State::kOver) return;
  const bool held = state() == State::kHolding;
  const DurationUs rest = held ? us_of(config_.ttl) : std::min(us_of(config_.ttl), config_.times.vote * 2);
  if (has_attempt()) unlock_everywhere(now);
  Releasing releasing;
  releasing.reason = outcome;
  if (!held || outcome != Outcome::kOk) releasing.outcome = outcome;
  releasing.released.resize(config_.servers);
  releasing.repeated.resize(config_.servers);
  releasing.report_at = now + config_.server_timeout;
  releasing.give_up_at = now + rest + rest / 10;
  phase_ = std::move(releasing);
}

// --- for all phases ---

void TicketWait::ask(size_t server, TicketRequest request, TimeUs now) {
  outgoing_.push_back({server, std::move(request), now});
}

void TicketWait::unlock_everywhere(TimeUs now) {
  slot_.told.assign(config_.servers, false);
  for (size_t server = 0; server < config_.servers; ++server) unlock_again(server, now);
}

void TicketWait::unlock_again(size_t server, TimeUs now) {
  if (!slot_.told[server]) ask(server, UnlockRequest{slot_.owner()}, now);
}

void TicketWait::record_told(const Asked& asked) {
  if (!has_attempt() && std::get<UnlockRequest>(asked.request).owner == slot_.owner())
    slot_.told[asked.server] = true;
}

// The server has something for an attempt that is over. If its UNLOCK is under way, that is enough.
void TicketWait::disown(size_t server, const std::string& owner, TimeUs now) {
  if (owner != slot_.owner()) ask(server, UnlockRequest{owner}, now);
}

void TicketWait::learn(size_t server, uint64_t token, uint64_t floor,
                       const std::vector<std::string>& over) {
  slot_.floor = std::max(slot_.floor, floor);
  slot_.token = std::max(slot_.token, token);
  slot_.over.learn(server, over);
}

bool TicketWait::has_attempt() const {
  return state() == State::kWaiting || state() == State::kHolding || state() == State::kKeeping;
}

bool TicketWait::is_live(TimeUs now, DurationUs span) const { return now <= heard_by_quorum() + span; }

// The newest time at which a request was sent to each server of some quorum that all of it has answered.
TimeUs TicketWait::heard_by_quorum() const {
  std::vector<TimeUs> heard;
  heard.reserve(pulses_.size());
  for (const Pulse* pulse : pulses_) heard.push_back(pulse->heard());
  std::sort(heard.begin(), heard.end(), std::greater<>());
  return heard[config_.quorum - 1];
}

// The round-trip time of the fastest quorum; of the known servers, if they are fewer.
DurationUs TicketWait::quorum_rtt() const {
  std::vector<DurationUs> trips;
  for (const Pulse* pulse : pulses_) {
    if (const std::optional<DurationUs> trip = pulse->rtt()) trips.push_back(*trip);
  }
  if (trips.empty()) return {0};
  std::sort(trips.begin(), trips.end());
  return trips[std::min(config_.quorum, trips.size()) - 1];
}

DurationUs TicketWait::live_span() const { return std::max(config_.times.live, quorum_rtt() * 4); }

// --- what the driver asks ---

DurationUs TicketWait::heartbeat_every() const {
  if (state() == State::kParked) return live_span() / 2;
  if (state() == State::kWaiting) return config_.times.heartbeat;
  const auto* holding = std::get_if<Holding>(&phase_);
  return holding != nullptr && lacks_hold(*holding) ? config_.times.heartbeat : kForeverUs;
}

// A holder or a released client can do without the silent server.
DurationUs TicketWait::patience() const {
  if (state() == State::kWaiting || state() == State::kParked) return {0};
  return state() == State::kOver || state() == State::kIdle ? kForeverUs : config_.times.heartbeat;
}

bool TicketWait::has_votes() const {
  const auto* waiting = std::get_if<Waiting>(&phase_);
  return waiting != nullptr && !waiting->attempt.ballot.empty();
}

uint64_t TicketWait::token() const { return std::get<Holding>(phase_).token; }

TimeUs TicketWait::valid_until() const { return std::get<Holding>(phase_).valid_until; }

bool TicketWait::confirmed() const { return std::get<Holding>(phase_).confirmed; }

std::optional<Outcome> TicketWait::renewal() const { return std::get<Holding>(phase_).renewal; }

std::optional<Outcome> TicketWait::outcome() const {
  if (const auto* keeping = std::get_if<Keeping>(&phase_)) return keeping->outcome;
  if (const auto* releasing = std::get_if<Releasing>(&phase_)) return releasing->outcome;
  if (const auto* over = std::get_if<Over>(&phase_)) return over->outcome;
  return std::nullopt;
}

void TicketWait::check_invariants() const {
  assert(slot_.told.size() == config_.servers);
  if (const auto* waiting = std::get_if<Waiting>(&phase_)) {
    assert(waiting->attempt.owner == slot_.owner());
    assert(waiting->first_vote.has_value() == !waiting->attempt.ballot.empty());
    assert(!waiting->raising || !waiting->attempt.ballot.empty());
  }
  if (const auto* holding = std::get_if<Holding>(&phase_)) {
    assert(holding->attempt.owner == slot_.owner() && holding->token != 0);
    assert(!holding->confirmed || holding->round);
  }
  assert(outgoing_.empty() || state() != State::kIdle);
}

}  // namespace holdfast::client
