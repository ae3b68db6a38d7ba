// A Channel never answers from within send(), so no function here is entered twice.
#include "client/api/ticket_lock.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "client/algorithm/lock_status.h"

namespace holdfast {

using client::Asked;
using client::Loop;
using client::status_of;
using client::TicketWait;
using client::TimeUs;

namespace {

// How long a lock that was left, or a release, waits for the servers beyond a quorum.
constexpr client::DurationUs kSpare{250'000};

ServerReport no_answer_yet(uint64_t token) {
  return {"", Outcome::kUnreachable, token, client::kNoAnswerYet, ServerError::kNone};
}

size_t count_of(const std::vector<ServerReport>& reports, Outcome outcome) {
  return static_cast<size_t>(std::ranges::count(reports, outcome, &ServerReport::outcome));
}

// Why there was no quorum, if time has passed without one.
Outcome why_late(const std::vector<ServerReport>& reports) {
  const bool refused = count_of(reports, Outcome::kRefused) > 0;
  return refused && count_of(reports, Outcome::kUnreachable) == 0 ? Outcome::kRefused
                                                                  : Outcome::kUnreachable;
}

}  // namespace

TicketLock::TicketLock(client::Loop& loop, Slots& slots, LockUser& user, Settings settings)
    : slots_(slots),
      user_(&user),
      settings_(std::move(settings)),
      slot_(settings_.slot.empty()
                ? slots_.take(settings_.config.terms.key, settings_.channels.size())
                : std::make_shared<client::TicketSlot>(settings_.slot, settings_.channels.size())),
      reports_(settings_.channels.size(), no_answer_yet(0)),
      timer_(loop, [this] { on_time(); }) {}

TicketLock::~TicketLock() {
  for (size_t i = 0; i < settings_.channels.size(); ++i)
    channel(i).leave(settings_.config.terms.key, slot_->name, *this);
}

// --- the functions of LockDriver ---

void TicketLock::acquire() {
  begun_ = Loop::time_us();
  begin();
  for (size_t i = 0; i < settings_.channels.size(); ++i)
    channel(i).join(settings_.config.terms.key, slot_->name, i, shared_from_this());
  drive();
}

void TicketLock::begin() {
  const TimeUs now = Loop::time_us();
  client::TicketConfig config = settings_.config;
  if (config.limit && config.limit->count > 0)
    config.limit = client::DurationUs{std::max<int64_t>((begun_ + *config.limit - now).count, 1)};
  std::vector<const client::Pulse*> pulses;
  pulses.reserve(settings_.channels.size());
  for (size_t i = 0; i < settings_.channels.size(); ++i) pulses.push_back(&channel(i).pulse());
  wait_.emplace(std::move(config), *slot_, client::Pulses(std::move(pulses)));
  wait_->acquire(now, Loop::clock_us());
}

void TicketLock::renew(DurationMs ttl, bool repair) {
  forget_answers();
  renewal_ = {true, std::nullopt};
  wait_->renew(Loop::time_us(), ttl, repair);
  drive();
}

void TicketLock::release(DurationMs at_least) {
  const State now_in = state();
  if (now_in == State::kReleasing || now_in == State::kOver) return;
  if (now_in == State::kHeld) {
    forget_answers();
  } else {
    failure_ = Outcome::kCancelled;
  }
  wait_->release(Loop::time_us(), client::us_of(at_least));
  drive();
}

// The hold must be confirmed, and be on all servers, so that it survives the failure of some. Until its end
// this object answers for it: a server may have only queued the request, or not have confirmed its vote.
void TicketLock::leave() {
  left_ = true;
  end_at_ = Loop::time_us() + settings_.config.server_timeout;
  if (!wait_->confirmed()) wait_->renew(Loop::time_us(), settings_.config.ttl);
  drive();
}

void TicketLock::retire() {
  user_ = nullptr;
  if (!settings_.slot.empty()) return is_done() ? void() : slots_.keep(shared_from_this());
  if (holds()) return slots_.keep(shared_from_this());
  if (left_) return;
  const bool settled = !wait_ || wait_->settled();
  slots_.put(settings_.config.terms.key, slot_, settled ? nullptr : shared_from_this());
}

LockDriver::State TicketLock::state() const {
  if (!wait_) return State::kAcquiring;
  switch (wait_->state()) {
    case TicketWait::State::kIdle:
      return State::kAcquiring;
    case TicketWait::State::kParked:
      return attempt_at_ == client::kNeverUs ? State::kAcquiring : State::kPausing;
    case TicketWait::State::kHolding:
      if (!settings_.confirms_first || wait_->confirmed()) return State::kHeld;
      [[fallthrough]];
    case TicketWait::State::kWaiting:
      return count_of(reports_, Outcome::kBusy) > 0 ? State::kQueued : State::kAcquiring;
    case TicketWait::State::kKeeping:
    case TicketWait::State::kReleasing:
    case TicketWait::State::kOver:
      break;
  }
  return wait_->outcome() ? State::kOver : State::kReleasing;
}

bool TicketLock::is_finished() const {
  const bool late = is_due(end_at_, Loop::time_us());
  if (left_ && holds())
    return late || (wait_->confirmed() && wait_->heartbeat_every() >= client::kForeverUs);
  return state() == State::kOver && (wait_->settled() || unlocks_ == 0 || late);
}

// Whether nobody needs this object any more after retire(). A hold of a slot of its own is then left to the
// caller, who renews and releases it by its owner: a repair by this object could undo that release.
bool TicketLock::is_done() const {
  if (settings_.slot.empty()) return !holds();
  return left_ && holds() ? is_finished() : !wait_ || wait_->settled() || left_;
}

bool TicketLock::holds() const {
  const TicketWait::State of_wait = wait_ ? wait_->state() : TicketWait::State::kIdle;
  return of_wait == TicketWait::State::kHolding || of_wait == TicketWait::State::kKeeping;
}

const Status* TicketLock::renewal() const {
  return !renewal_.under_way && renewal_.outcome ? &*renewal_.outcome : nullptr;
}

std::string TicketLock::owner() const { return slot_->owner(); }

// --- the functions of ChannelUser ---

void TicketLock::answered(const Asked& asked, const client::Answer& answer) {
  const auto self = shared_from_this();
  if (std::holds_alternative<client::UnlockRequest>(asked.request)) --unlocks_;
  record(asked, answer);
  if (wait_) wait_->on_answer(asked, answer, Loop::time_us());
  drive();
  tell();
}

void TicketLock::pushed(size_t server, const client::Push& push) {
  const auto self = shared_from_this();
  if (wait_) wait_->on_push(server, push, Loop::time_us());
  drive();
  tell();
}

void TicketLock::reconnected(size_t server) {
  const auto self = shared_from_this();
  if (wait_) wait_->on_connection(server, Loop::time_us());
  drive();
  tell();
}

void TicketLock::restarted(size_t server) {
  const auto self = shared_from_this();
  if (wait_) wait_->on_restart(server, Loop::time_us());
  drive();
  tell();
}

client::DurationUs TicketLock::heartbeat_every() const {
  return wait_ ? wait_->heartbeat_every() : client::kForeverUs;
}

client::DurationUs TicketLock::patience() const { return wait_ ? wait_->patience() : client::kForeverUs; }

// --- answers ---

void TicketLock::record(const Asked& asked, const client::Answer& answer) {
  if (std::holds_alternative<client::YieldRequest>(asked.request)) return;
  const bool unlock = std::holds_alternative<client::UnlockRequest>(asked.request);
  if (unlock && !has_held_) return;  // of an attempt
  const bool wait = std::holds_alternative<client::WaitRequest>(asked.request);
  if (wait && has_held_) return;  // it repairs the hold
  ServerReport& report = reports_[asked.server];
  if (const auto* refusal = std::get_if<client::Refusal>(&answer)) {
    report = {"", outcome_of(*refusal), 0, refusal->text, refusal->error};
    too_new_ = too_new_ || (wait && refusal->code == client::Refusal::Code::kUnknown);
  } else if (const auto* vote = std::get_if<client::WaitAnswer>(&answer)) {
    report = {"", vote->token == 0 ? Outcome::kBusy : Outcome::kOk, vote->token, "", ServerError::kNone};
  } else if (const auto* count = std::get_if<client::Count>(&answer)) {
    report.text.clear();
    report.error = ServerError::kNone;
    report.outcome = count->number > 0    ? Outcome::kOk
                     : count->number == 0 ? Outcome::kExpired
                                          : Outcome::kNotOwner;
  }
}

// Before a round of requests to all servers.
void TicketLock::forget_answers() {
  for (ServerReport& report : reports_) report = no_answer_yet(report.token);
}

// Whether the server has told why it does nothing, or its connection has failed.
bool TicketLock::has_failed(size_t server) const {
  const ServerReport& report = reports_[server];
  if (report.outcome == Outcome::kRefused) return true;
  return report.outcome == Outcome::kUnreachable && report.text != client::kNoAnswerYet;
}

bool TicketLock::lacks_quorum() const {
  size_t failed = 0;
  for (size_t i = 0; i < reports_.size(); ++i) failed += has_failed(i) ? 1 : 0;
  return failed > spare();
}

// The servers that have not answered for a while.
void TicketLock::record_silence() {
  const client::DurationUs live = settings_.config.times.live;
  const TimeUs since = Loop::time_us() - live;
  const std::string why = "no answer in " + std::to_string(live.count / 1000) + " ms";
  for (size_t i = 0; i < reports_.size(); ++i) {
    if (!has_failed(i) && channel(i).pulse().heard() < since)
      reports_[i] = {"", Outcome::kUnreachable, 0, why, ServerError::kNone};
  }
}

// --- what follows ---

void TicketLock::drive() {
  send_requests();
  judge();
  follow_wait();
  follow_leave();
  send_requests();
  for (size_t i = 0; i < settings_.channels.size(); ++i) channel(i).look(*this);
  timer_.set(next_deadline());
  if (user_ == nullptr && is_done()) slots_.forget(shared_from_this());
}

// A hold that was left has expired on the servers, too, when its validity is over.
void TicketLock::send_requests() {
  if (!wait_) return;
  const std::vector<Asked> requests = wait_->take_requests();
  if (left_ && !holds()) return;
  for (const Asked& asked : requests) {
    if (std::holds_alternative<client::UnlockRequest>(asked.request)) ++unlocks_;
    channel(asked.server).send(shared_from_this(), asked, settings_.config.terms);
  }
}

// Ends an acquisition that cannot succeed.
void TicketLock::judge() {
  const State now_in = state();
  const bool acquires =
      now_in == State::kAcquiring || now_in == State::kQueued || now_in == State::kPausing;
  if (!acquires) return;
  const auto refused = static_cast<size_t>(std::ranges::count_if(reports_, [](const ServerReport& r) {
    return r.outcome == Outcome::kRefused && client::is_permanent(r.error);
  }));
  if (wait_->state() == TicketWait::State::kParked) {
    on_parked();
  } else {
    attempt_at_ = client::kNeverUs;
  }
  if (refused > spare()) failure_ = Outcome::kRefused;
  if (failure_ || too_new_) wait_->release(Loop::time_us());
}

// An attempt fails when its parking shows that no quorum can answer, or after the timeout of a server:
// servers may be far away. Without a quorum that answers, each further timeout is an attempt.
void TicketLock::on_parked() {
  const TimeUs now = Loop::time_us();
  const client::DurationUs timeout = settings_.config.server_timeout;
  const bool first = attempt_at_ == client::kNeverUs;
  const bool due = first ? lacks_quorum() || is_due(begun_ + timeout, now) : is_due(attempt_at_, now);
  if (!due) return;
  attempt_at_ = now + timeout;
  record_silence();
  status_ = status_of(why_late(reports_), reports_);
  if (attempts_ == settings_.max_attempts) {
    failure_ = status_.outcome;
  } else {
    ++attempts_;
  }
}

// Sees what has become of the wait.
void TicketLock::follow_wait() {
  if (!wait_ || left_) return;
  if (wait_->state() == TicketWait::State::kHolding && wait_->renewal()) follow_renewal(*wait_->renewal());
  const State before = std::exchange(known_state_, state());
  if (known_state_ == before) return;
  if (known_state_ == State::kHeld) {
    has_held_ = true;
    status_ = status_of(Outcome::kOk, reports_);
  } else if (known_state_ == State::kReleasing || known_state_ == State::kOver) {
    follow_end(before);
  }
}

// A silent server does not hold up the end of the program, which could last longer than a short TTL.
void TicketLock::follow_leave() {
  if (!left_ || !holds() || !wait_->confirmed() || std::exchange(has_quorum_, true)) return;
  const client::DurationUs share{settings_.config.ttl.count * 100};  // a tenth
  end_at_ = std::min(end_at_, Loop::time_us() + std::min(kSpare, share));
}

// A loss counts also when it shows later than the outcome of the renewal.
void TicketLock::follow_renewal(Outcome outcome) {
  const bool lost = outcome == Outcome::kExpired;
  if (lost && state() != State::kHeld) return wait_->release(Loop::time_us());  // the user does not know it
  if (!renewal_.under_way && !lost) return;
  if (!lost && outcome != Outcome::kOk) outcome = why_late(reports_);
  renewal_ = {false, status_of(outcome, reports_)};
}

void TicketLock::follow_end(State before) {
  if (end_at_ == client::kNeverUs) end_at_ = Loop::time_us() + settings_.config.server_timeout;
  if (known_state_ != State::kOver) return;
  end_at_ = std::min(end_at_, Loop::time_us() + kSpare);
  Outcome outcome = failure_.value_or(*wait_->outcome());
  // The servers have not confirmed the votes in time: the wait goes on.
  const bool tries_once = settings_.config.limit && settings_.config.limit->count == 0;
  if (outcome == Outcome::kExpired && !has_held_ && !tries_once) {
    end_at_ = client::kNeverUs;
    ++attempts_;
    send_requests();
    begin();
    known_state_ = state();
    return;
  }
  const bool alone = outcome == Outcome::kTimeout &&
                     (before == State::kPausing || count_of(reports_, Outcome::kUnreachable) > spare());
  if (alone || outcome == Outcome::kUnreachable) outcome = why_late(reports_);
  status_ = status_of(outcome, reports_);
}

// --- time ---

TimeUs TicketLock::next_deadline() const {
  const TimeUs next = wait_ ? wait_->next_deadline() : client::kNeverUs;
  if (end_at_ == client::kNeverUs) return std::min(next, attempt_at_);
  return is_finished() ? next : std::min(next, end_at_);
}

void TicketLock::on_time() {
  const auto self = shared_from_this();
  if (wait_) wait_->on_time(Loop::time_us());
  drive();
  tell();
}

void TicketLock::tell() {
  if (user_ != nullptr) user_->driver_changed();
}

}  // namespace holdfast
