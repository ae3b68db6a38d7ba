// The phase Holding: renewals, extend(), the events of the key, and how the hold ends.
#include <algorithm>
#include <utility>

#include "client/api/client_core.h"
#include "client/api/hold_core.h"
#include "client/base/validity.h"

namespace holdfast {

using client::Loop;
using State = LockDriver::State;

namespace {

// Returns how long before the end of the validity a loss is reported, in case a timer fires late.
DurationMs margin_of(DurationMs validity) {
  return {std::clamp(validity.count / 20, int64_t{2}, int64_t{250})};
}

// Returns `ms`, but at most 1/part of the time left until the lock counts as lost, and at least 1 ms.
DurationMs share_of_time(const hold::Holding& holding, int64_t ms, int64_t part) {
  return {std::max<int64_t>(std::min(ms, (holding.lost_at - Loop::now()).count / part), 1)};
}

}  // namespace

void HoldCore::run(Holding& holding) {
  record_renewal(holding);
  if (!std::holds_alternative<Holding>(phase_)) return;
  if (driver_->state() != State::kHeld) return lose(driver_->status(), Loop::now(), expiry_reason(holding));
  if (driver_->valid_until() != holding.valid_until) set_times(holding);
  if (begin_next(holding)) run(holding);
}

// --- renewals ---

// Begins what waits for the end of the last renewal. Returns whether there was something.
bool HoldCore::begin_next(Holding& holding) {
  if (holding.renewing) return false;
  if (!holding.extends.empty()) {
    const auto [ttl, answer] = std::move(holding.extends.front());
    holding.extends.erase(holding.extends.begin());
    begin_renewal(holding, ttl, true, answer);
    return true;
  }
  if (!holding.verify_later) return false;
  verify(holding);
  return true;
}

void HoldCore::begin_renewal(Holding& holding, DurationMs ttl, bool repair, Answer answer) {
  holding.renewing = hold::Renewing{ttl, repair, Loop::now_us(), std::move(answer)};
  if (repair) holding.renew_at = kNever;
  driver_->renew(ttl, repair);
  // A shorter validity counts at once, because a server may have the shorter TTL already.
  const bool held = driver_->state() == State::kHeld;
  if (held && driver_->valid_until().count <= valid_until_ms_) set_end(holding, ttl);
}

// A renewal whose outcome was kOk becomes kExpired if later answers show that too many servers are without
// the hold.
void HoldCore::record_renewal(Holding& holding) {
  const Status* outcome = driver_->renewal();
  if (outcome == nullptr) return;
  const TimeMs free_at{valid_until_ms_ + 1};
  if (!holding.renewing) {
    if (outcome->outcome == Outcome::kExpired) lose(*outcome, free_at, LossReason::kGone);
    return;
  }
  const hold::Renewing renewing = std::move(*holding.renewing);
  holding.renewing.reset();
  const Status status = named(*outcome);
  holding.renewed = status.outcome;
  const microseconds took(Loop::now_us() - renewing.begun_us);
  client_->meter().record_renewal(key_, token_, status.outcome, took);
  if (status.ok()) {
    if (options_.renew || renewing.answer) holding.ttl = renewing.ttl;
    const TimeMs due = renewing.repairs ? kNever : holding.renew_at;
    set_times(holding);
    holding.renew_at = std::min(holding.renew_at, due);
  } else if (options_.renew) {  // retry soon, as long as there is time
    holding.renew_at = Loop::now() + share_of_time(holding, holding.ttl.count / 10, 4);
  }
  if (renewing.answer) renewing.answer->set_value(status);
  if (status.outcome == Outcome::kExpired) return lose(status, free_at, LossReason::kGone);
  // A question without an answer says nothing: a regular renewal follows it soon.
  if (renewing.repairs || status.ok()) notify_renewal(holding, status);
}

// Reports the first renewal that fails, and the first that succeeds again.
void HoldCore::notify_renewal(Holding& holding, const Status& status) {
  if (holding.failing == !status.ok()) return;
  holding.failing = !status.ok();
  const auto& callback = holding.failing ? options_.on_renewal_failed : options_.on_renewal_restored;
  if (callback && !detached_) callback(status);
}

// Asks the servers whether the lock is still held, by a renewal. Its TTL is not longer than the user
// wanted, and not shorter than the validity that the user knows. It repairs no server: LOCKS BREAK goes to
// one server after the other, and each would be repaired before the next gets it. The next regular renewal
// still comes. A renewal under way may have run before the hold ended, so another one follows it.
void HoldCore::verify(Holding& holding) {
  holding.verify_later = holding.renewing.has_value();
  if (holding.renewing || driver_->state() != State::kHeld) return;
  if (options_.renew) return begin_renewal(holding, holding.ttl, false);
  const DurationMs left{std::max<int64_t>((driver_->valid_until() - Loop::now()).count, 1)};
  begin_renewal(holding, std::min(client::ttl_for_validity(left), holding.ttl), false);
}

// --- time ---

// Sets the end of the validity, and before it the times to renew, to warn and to declare the lock lost. A
// grant that was slow has less time left than its TTL says. So has one that the servers have not confirmed.
void HoldCore::set_times(Holding& holding) {
  const TimeMs now = Loop::now();
  set_end(holding, holding.ttl);
  const DurationMs before{options_.warn_before.count()};
  const TimeMs warn = TimeMs{valid_until_ms_} - before;
  if (before.count > 0 && (!holding.warned || warn > now)) {
    holding.warn_at = warn;
    holding.warned = false;
  }
  holding.renew_at = options_.renew ? now + share_of_time(holding, holding.ttl.count / 3, 2) : kNever;
}

void HoldCore::set_end(Holding& holding, DurationMs ttl) {
  holding.valid_until = driver_->valid_until();
  valid_until_ms_ = holding.valid_until.count - 1;  // users' clocks may be a part of 1 ms ahead
  const DurationMs left{(holding.valid_until - Loop::now()).count};
  holding.lost_at = holding.valid_until - margin_of(std::min(ttl, left));
}

void HoldCore::on_time(Holding& holding) {
  const TimeMs now = Loop::now();
  if (is_due(holding.warn_at, now)) {
    holding.warn_at = kNever;
    holding.warned = true;
    if (options_.on_expiring && !detached_) options_.on_expiring();
  }
  if (is_due(holding.lost_at, now)) {
    const Status* last = driver_->renewal();
    const Status why = last != nullptr && !last->ok() ? *last : not_held();
    return lose(why, {valid_until_ms_ + 1}, expiry_reason(holding));
  }
  if (is_due(holding.renew_at, now) && !holding.renewing) begin_renewal(holding, holding.ttl, true);
}

void HoldCore::on_event(const std::string& message) {
  auto* holding = std::get_if<Holding>(&phase_);
  if (holding == nullptr) return;
  const std::string what = message.substr(0, message.find(' '));
  if (what == "revoke") {
    if (options_.on_revoke_requested && !detached_) options_.on_revoke_requested();
    return;
  }
  // The event of one server does not end the hold: all servers are asked. The same after a new subscription
  // (empty message), because messages may have been missed.
  const bool ends = what == "released" || what == "expired" || what == "broken";
  if (message.empty() || (ends && message == what + " " + owner_)) verify(*holding);
  drive();
}

// --- the end of the hold ---

// Returns the reason of a loss by the end of the validity: what the last renewal said.
LossReason HoldCore::expiry_reason(const Holding& holding) const {
  if (holding.renewing) return LossReason::kUnreachable;
  if (!holding.renewed || *holding.renewed == Outcome::kOk) return LossReason::kExpired;
  if (*holding.renewed == Outcome::kUnreachable) return LossReason::kUnreachable;
  return *holding.renewed == Outcome::kRefused ? LossReason::kRefused : LossReason::kGone;
}

// Returns the next phase, and answers the calls of extend() that are still open.
hold::Ending HoldCore::end_of(Holding& holding) {
  locked_ = false;
  if (holding.renewing && holding.renewing->answer) holding.renewing->answer->set_value(not_held());
  for (const auto& [ttl, answer] : holding.extends) answer->set_value(not_held());
  return {};
}

void HoldCore::begin_to_release(Holding& holding, DurationMs at_least) {
  const bool in_time = driver_->state() == State::kHeld && !is_due(driver_->valid_until(), Loop::now());
  Ending ending = end_of(holding);
  ending.release = {holding.granted_us, in_time ? LossReason::kGone : expiry_reason(holding)};
  phase_ = std::move(ending);
  driver_->release(at_least);
}

// Reports the loss of the lock. If the validity that the user knows is not over, the lock is released only
// when it is: until then, a user that relies on validity() must not meet another holder.
void HoldCore::lose(Status why, TimeMs free_at, LossReason reason) {
  auto& holding = std::get<Holding>(phase_);
  client_->meter().record_loss(key_, token_, reason, microseconds(Loop::now_us() - holding.granted_us));
  Ending ending = end_of(holding);
  ending.gone = true;
  ending.free_at = free_at;
  phase_ = std::move(ending);
  driver_->stop_renewing();
  if (is_due(free_at, Loop::now())) free_lost(std::get<Ending>(phase_));
  why.outcome = Outcome::kExpired;
  if (options_.on_lost && !detached_) options_.on_lost(named(std::move(why)));
}

}  // namespace holdfast
