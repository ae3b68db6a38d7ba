// The life of a lock. A driver never calls its user from within a call, so no function here is entered
// twice, except by drive().
#include "client/api/hold_core.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/api/client_core.h"

namespace holdfast {

using client::Loop;
using State = LockDriver::State;

HoldCore::HoldCore(std::shared_ptr<ClientCore> client, std::string key, WaitLimit wait, LockOptions options,
                   Done done)
    : client_(std::move(client)),
      key_(std::move(key)),
      options_(std::move(options)),
      wait_(wait),
      servers_(client_->ring().servers_of(key_)),
      phase_(Acquiring{std::move(done)}) {}

HoldCore::~HoldCore() = default;

// --- the functions of Hold ---

bool HoldCore::is_forked() const { return client_->is_forked(); }

bool HoldCore::is_locked() const {
  client_->forbid_after_fork();
  return locked_ && Loop::now().count < valid_until_ms_;
}

milliseconds HoldCore::validity() const {
  if (!is_locked()) return milliseconds(0);
  return milliseconds(std::max<int64_t>(0, valid_until_ms_ - Loop::now().count));
}

Status HoldCore::ask(const std::function<void(Answer)>& work) {
  client_->forbid_to_wait();
  const auto answer = std::make_shared<std::promise<Status>>();
  if (!client_->post([self = shared_from_this(), work, answer] { work(answer); }))
    return {Outcome::kCancelled, kDestroyed};
  return answer->get_future().get();
}

Status HoldCore::extend(milliseconds ttl) {
  return ask([this, ttl](const Answer& answer) {
    auto* holding = std::get_if<Holding>(&phase_);
    if (holding == nullptr) return answer->set_value(not_held());
    holding->extends.emplace_back(DurationMs{ttl.count()}, answer);
    drive();
  });
}

Status HoldCore::unlock(milliseconds at_least) {
  return ask([this, at_least](const Answer& answer) {
    if (auto* holding = std::get_if<Holding>(&phase_)) begin_to_release(*holding, {at_least.count()});
    auto* ending = std::get_if<Ending>(&phase_);
    if (ending == nullptr || ending->gone) {
      answer->set_value(not_held());
      return release();
    }
    ending->releases.push_back(answer);
    drive();
  });
}

void HoldCore::detach() {
  detached_ = true;
  locked_ = false;
  client_->post([self = shared_from_this()] { self->release(); });
}

void HoldCore::leave() {
  client_->forbid_after_fork();
  locked_ = false;
  client_->post([self = shared_from_this()] { self->stop_without_release(); });
}

// leave() on the loop's thread.
void HoldCore::stop_without_release() {
  auto* holding = std::get_if<Holding>(&phase_);
  if (holding == nullptr) return;
  phase_ = end_of(*holding);
  std::get<Ending>(phase_).gone = true;
  driver_->leave();
  drive();
}

// --- from the first request to the hold ---

void HoldCore::start() {
  if (client_->is_closing()) return refuse();
  auto& acquiring = std::get<Acquiring>(phase_);
  acquiring.asked_us = Loop::now_us();
  timer_ = std::make_unique<client::LoopTimer>(client_->loop(), [this] { on_timer(); });
  client_->adopt(shared_from_this());
  if (wait_.waits && options_.on_waiting) {
    acquiring.inquiry = std::make_shared<WaitInquiry>(
        *client_, key_, servers_, [this] { return driver_->owner(); }, options_.on_waiting);
  }
  use_driver(client_->waits_by_ticket(servers_));
  drive();
}

// Acquires by ticket or by attempts, in the rest of the time.
void HoldCore::use_driver(bool tickets) {
  WaitLimit wait = wait_;
  if (wait.at_most) {
    const microseconds gone(Loop::now_us() - std::get<Acquiring>(phase_).asked_us);
    wait.at_most = std::max(milliseconds(1), *wait.at_most - std::chrono::floor<milliseconds>(gone));
  }
  const LockRequest request{key_, servers_, options_, wait};
  std::get<Acquiring>(phase_).by_ticket = tickets;
  driver_ =
      tickets ? make_ticket_lock(*client_, *this, request) : make_attempt_lock(*client_, *this, request);
  driver_->acquire();
}

void HoldCore::drive() {
  const auto self = shared_from_this();
  if (auto* acquiring = std::get_if<Acquiring>(&phase_)) run(*acquiring);
  if (auto* holding = std::get_if<Holding>(&phase_)) run(*holding);
  if (auto* ending = std::get_if<Ending>(&phase_)) run(*ending);
  arm_timer();
}

// From tickets to attempts if a server does not know tickets. And back if that server was upgraded during
// the wait: an attempt fails as long as other clients wait by ticket.
void HoldCore::change_driver(Acquiring& acquiring) {
  if (driver_->is_too_new()) {
    driver_->retire();
    return use_driver(false);
  }
  const bool pauses = !acquiring.by_ticket && driver_->state() == State::kPausing;
  if (!pauses || !client_->waits_by_ticket(servers_)) return;
  driver_->release({0});
  driver_->retire();
  acquiring.counted_attempts = 0;
  use_driver(true);
}

void HoldCore::run(Acquiring& acquiring) {
  change_driver(acquiring);
  const size_t begun = driver_->attempts();
  const bool again = begun > acquiring.counted_attempts && acquiring.counted_attempts > 0;
  if (begun > acquiring.counted_attempts)
    client_->meter().record_attempts(begun - std::exchange(acquiring.counted_attempts, begun));
  const State state = driver_->state();
  const State before = std::exchange(acquiring.seen, state);
  if (state == State::kHeld) return begin_to_hold(std::move(acquiring));
  if (state == State::kOver) return fail(std::move(acquiring));
  if (state == State::kQueued && before != state) {
    acquiring.waited = true;
    if (acquiring.inquiry) acquiring.inquiry->record_queue();
  }
  if (state == State::kPausing && (before != state || again)) {
    acquiring.waited = true;
    if (options_.on_attempt_failed) options_.on_attempt_failed(named(driver_->status()));
  }
}

void HoldCore::fail(Acquiring&& ended) {
  const Acquiring acquiring = std::move(ended);  // a part of the phase
  phase_ = Ending{};
  const char* cancelled = acquiring.cancelled;
  const Status status = cancelled ? Status{Outcome::kCancelled, cancelled} : named(driver_->status());
  const microseconds took(Loop::now_us() - acquiring.asked_us);
  client_->meter().record_no_grant(key_, status.outcome, took, acquiring.waited);
  acquiring.done(status);
}

void HoldCore::begin_to_hold(Acquiring acquiring) {
  acquiring.inquiry.reset();
  owner_ = driver_->owner();
  token_ = driver_->token();
  Holding holding;
  holding.granted_us = Loop::now_us();
  holding.ttl = {options_.ttl.count()};
  set_times(holding);
  locked_ = true;
  if (options_.on_lost || options_.on_revoke_requested) {
    holding.watch = std::make_unique<KeyWatch>(*client_, servers_, key_,
                                               [self = weak_from_this()](const std::string& message) {
                                                 if (const auto hold = self.lock()) hold->on_event(message);
                                               });
  }
  const microseconds took(holding.granted_us - acquiring.asked_us);
  client_->meter().record_grant(key_, token_, took, acquiring.waited);
  phase_ = std::move(holding);
  acquiring.done({named(driver_->status()), Hold(shared_from_this())});
}

// --- the end ---

void HoldCore::release(DurationMs at_least) {
  if (auto* holding = std::get_if<Holding>(&phase_)) begin_to_release(*holding, at_least);
  if (std::holds_alternative<Acquiring>(phase_)) driver_->release({0});
  if (auto* ending = std::get_if<Ending>(&phase_)) free_lost(*ending);
  if (!std::holds_alternative<hold::Over>(phase_)) drive();
}

// Releases a lost lock, if that was put off.
void HoldCore::free_lost(Ending& ending) {
  if (std::exchange(ending.free_at, kNever) != kNever) driver_->release({0});
}

// Answers the calls of unlock(). A quorum of confirmations is enough; slow servers may answer later. A
// release may find that the lock was lost before.
void HoldCore::run(Ending& ending) {
  if (driver_->state() == State::kOver) {
    const Status status = named(driver_->status());
    if (const auto release = std::exchange(ending.release, std::nullopt)) {
      const microseconds held(Loop::now_us() - release->granted_us);
      if (status.outcome == Outcome::kExpired) {
        client_->meter().record_loss(key_, token_, release->if_lost, held);
      } else {
        client_->meter().record_release(key_, token_, status.outcome, held);
      }
    }
    for (const Answer& answer : std::exchange(ending.releases, {})) answer->set_value(status);
  }
  if (ending.free_at == kNever && driver_->is_finished()) end();
}

void HoldCore::end() {
  for (const Answer& answer : std::get<Ending>(phase_).releases) answer->set_value(not_held());
  phase_ = hold::Over{};
  locked_ = false;
  timer_.reset();
  driver_->retire();
  driver_.reset();
  client_->forget(shared_from_this());
}

// --- time ---

void HoldCore::on_timer() {
  const auto self = shared_from_this();
  if (auto* holding = std::get_if<Holding>(&phase_)) on_time(*holding);
  auto* ending = std::get_if<Ending>(&phase_);
  if (ending != nullptr && is_due(ending->free_at, Loop::now())) free_lost(*ending);
  drive();
}

void HoldCore::arm_timer() {
  if (timer_ == nullptr) return;
  TimeMs next = kNever;
  if (const auto* holding = std::get_if<Holding>(&phase_)) {
    const TimeMs renew_at = holding->renewing ? kNever : holding->renew_at;
    next = std::min({renew_at, holding->warn_at, holding->lost_at});
  }
  if (const auto* ending = std::get_if<Ending>(&phase_)) next = ending->free_at;
  timer_->set(next);
}

Status HoldCore::named(Status status) const {
  for (size_t i = 0; i < status.servers.size(); ++i)
    status.servers[i].server = client_->config().servers[servers_[i]].text();
  return status;
}

}  // namespace holdfast
