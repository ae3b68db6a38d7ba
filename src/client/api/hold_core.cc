// Connects the state machine with the links and the user. A Link never answers from within send(), so no
// function here is entered twice.
#include "client/api/hold_core.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

#include "client/api/client_core.h"
#include "client/api/wait_inquiry.h"
#include "client/base/random.h"
#include "client/base/validity.h"

namespace holdfast {

namespace {

using client::Loop;
using client::Redlock;

// Returns how long before the end of the validity a loss is reported, in case a timer fires late.
DurationMs margin_of(DurationMs ttl) { return {std::clamp(ttl.count / 20, int64_t{2}, int64_t{250})}; }

// The reason of a link for a missing reply is more exact than that of the state machine, so it comes first.
constexpr DurationMs kLinkFirst{100};

// Redis has no queue: a wait there follows the events of the key. With a limit of attempts or a backoff it
// consists of attempts instead.
void set_retries(client::RedlockConfig& config, const client::ClientConfig& place,
                 const LockOptions& options) {
  config.max_attempts = options.max_attempts > 0 ? options.max_attempts : place.max_attempts;
  const std::optional<RetryBackoff>& backoff = options.backoff ? options.backoff : place.backoff;
  if (backoff) config.backoff = {{backoff->first.count()}, backoff->factor, {backoff->longest.count()}};
  const bool redis = std::ranges::any_of(place.servers, &client::Address::redis);
  config.queues = !redis || (config.max_attempts == 0 && !backoff);
}

client::RedlockConfig config_of(const client::ClientConfig& place, WaitLimit wait,
                                const LockOptions& options) {
  client::RedlockConfig config;
  config.servers = place.replicas;
  config.quorum = quorum_of(place, options.mode);
  // A shared hold excludes only writers, which need the write quorum. The other holds exclude readers, too.
  const bool shared = options.mode == Mode::kSharedLock;
  config.breach = shared ? place.write_quorum : std::min(place.write_quorum, place.read_quorum);
  config.ttl = {options.ttl.count()};
  config.server_timeout = {place.server_timeout.count + kLinkFirst.count};
  config.min_wait = place.min_wait;
  config.max_wait = place.max_wait;
  set_retries(config, place, options);
  if (wait.waits) config.wait = DurationMs{wait.at_most.value_or(milliseconds(0)).count()};  // 0: no limit
  return config;
}

std::vector<std::string> words_of(const LockOptions& options) {
  if (options.mode == Mode::kSharedLock) return {"SHARED"};
  if (options.mode == Mode::kCountedLock) return {"LIMIT", std::to_string(options.limit)};
  return {};
}

Status over() { return {Outcome::kExpired, "the lock is not held any more"}; }

}  // namespace

HoldCore::HoldCore(std::shared_ptr<ClientCore> client, std::string key, WaitLimit wait, LockOptions options,
                   Done done)
    : client_(std::move(client)),
      key_(std::move(key)),
      options_(std::move(options)),
      done_(std::move(done)),
      servers_(client_->ring().servers_of(key_)),
      machine_(config_of(client_->place(), wait, options_), key_, words_of(options_), client::random_below),
      server_timeout_(client_->place().server_timeout),
      may_wait_(wait.waits),
      ttl_{options_.ttl.count()} {}

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
    if (phase_ != Phase::kHolding) return answer->set_value(over());
    extends_.emplace_back(DurationMs{ttl.count()}, answer);
    drive();
  });
}

Status HoldCore::unlock(milliseconds at_least) {
  return ask([this, at_least](const Answer& answer) {
    if (phase_ == Phase::kOver || was_lost_ || left_) {
      answer->set_value(over());
      return release();
    }
    releases_.push_back(answer);
    release({at_least.count()});
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

// leave() on the loop's thread. Does not end the requests at once: servers beyond the quorum should still
// grant the lock, so that it survives the failure of some servers.
void HoldCore::stop_without_release() {
  if (phase_ != Phase::kHolding) return;
  phase_ = Phase::kEnding;
  left_ = true;
  machine_.stop_renewing();
  while (!waits_.empty()) end_wait(waits_.begin()->first);
  drive();
}

void HoldCore::start() {
  if (client_->is_closing()) return refuse();
  asked_us_ = Loop::now_us();
  timer_ = std::make_unique<client::LoopTimer>(client_->loop(), [this] { on_timer(); });
  client_->adopt(shared_from_this());
  if (options_.mode == Mode::kExclusiveLock && client_->may_hand_over(servers_)) machine_.use_hand_over();
  machine_.acquire(Loop::now(), Loop::clock_us(), client_->is_contended(key_));
  if (may_wait_ && options_.on_waiting) begin_inquiry();
  drive();
}

void HoldCore::begin_inquiry() {
  inquiry_ = std::make_shared<WaitInquiry>(
      *client_, key_, servers_, [this] { return queued_owner_; }, options_.on_waiting);
}

void HoldCore::release(DurationMs at_least) {
  if (free_at_ != kNever) {
    free_lost();
    return drive();
  }
  if (phase_ == Phase::kEnding || phase_ == Phase::kOver) return;
  locked_ = false;
  if (queued_) client_->record_contention(key_);
  if (phase_ == Phase::kHolding) {
    phase_ = Phase::kEnding;
    releasing_ = true;
    released_in_time_ = !is_due(machine_.valid_until(), Loop::now());
  }
  if (machine_.state() != Redlock::State::kOver) machine_.release(Loop::now(), at_least);
  drive();
}

client::Link& HoldCore::link(size_t server) { return client_->link(servers_[server]); }

bool HoldCore::may_extend() const {
  return phase_ == Phase::kHolding && machine_.state() == Redlock::State::kHeld && !renewing_ &&
         !extends_.empty();
}

void HoldCore::drive() {
  if (may_extend()) {
    extending_ = std::move(extends_.front().second);
    const DurationMs ttl = extends_.front().first;
    extends_.erase(extends_.begin());
    renew(ttl);
  }
  if (must_verify()) verify();
  for (const uint64_t id : machine_.take_ends()) end_wait(id);
  for (const client::Send& next : machine_.take_sends()) send(next);
  observe();
}

void HoldCore::send(const client::Send& send) {
  ++under_way_;
  const bool locks = send.argv.front() == "LOCK" && !options_.note.empty();
  transmit(send, locks && client_->takes_notes(servers_[send.server]));
}

void HoldCore::transmit(const client::Send& send, bool with_note) {
  std::vector<std::string> argv = send.argv;
  client::Link::Done done = [self = shared_from_this(), id = send.id](const client::Reply& reply) {
    self->receive(id, reply);
  };
  if (with_note) {
    argv.insert(argv.end(), {"NOTE", options_.note});
    done = [self = shared_from_this(), send](const client::Reply& reply) { self->receive(send, reply); };
  }
  client::Link& there = link(send.server);
  if (send.quiet && argv.front() != "LOCK") return there.send_quietly(argv, server_timeout_, done);
  if (!send.waits && !send.quiet) return there.send(argv, server_timeout_, done);
  queued_owner_ = send.argv[2];  // LOCK key owner
  waits_[send.id] = {send.server, send.quiet ? there.wait_quietly(argv, done) : there.wait(argv, done),
                     send.quiet};
}

// The reply to a LOCK with a NOTE. A server without that option gets the request again without it.
void HoldCore::receive(const client::Send& noted, const client::Reply& reply) {
  // A server that does not know quiet waits may know notes.
  if (reply.error != ServerError::kSyntax || noted.quiet) return receive(noted.id, reply);
  client_->record_no_notes(servers_[noted.server]);
  if (const auto wait = waits_.find(noted.id); wait != waits_.end())
    link(noted.server).end(wait->second.wait);
  transmit(noted, false);
}

void HoldCore::end_wait(uint64_t id) {
  const auto wait = waits_.find(id);
  if (wait == waits_.end()) return;
  link(wait->second.server).end(wait->second.wait);
  if (!wait->second.answered) --under_way_;
  waits_.erase(wait);
}

void HoldCore::receive(uint64_t id, const client::Reply& reply) {
  if (reply.kind != client::Reply::Kind::kNext) {
    --under_way_;
    const auto wait = waits_.find(id);
    if (wait != waits_.end()) wait->second.answered = true;
    if (wait != waits_.end() && wait->second.quiet) waits_.erase(wait);  // it ends with its answer
  }
  machine_.on_reply(id, reply, Loop::now(), Loop::clock_us());
  drive();
}

// Compares the machine's state with the phase, and reports each change to the user.
void HoldCore::observe() {
  const Redlock::State state = machine_.state();
  record_attempts();
  if (phase_ == Phase::kAcquiring && state == Redlock::State::kHeld) become_holder();
  if (phase_ == Phase::kHolding) record_renewal();
  if (may_extend() || must_verify()) return drive();
  if (phase_ == Phase::kHolding && state == Redlock::State::kOver) {
    lose(machine_.result(), Loop::now(), expiry_reason());
  }
  if (phase_ == Phase::kAcquiring) record_waiting();
  if (phase_ == Phase::kEnding && machine_.state() == Redlock::State::kOver) answer_releases();
  if (phase_ == Phase::kAcquiring && state == Redlock::State::kOver && done_) {
    unwatch();
    inquiry_.reset();
    const Status status = cancelled_ ? Status{Outcome::kCancelled, cancelled_} : named(machine_.result());
    client_->meter().record_no_grant(key_, status.outcome, since(asked_us_), waited_);
    std::exchange(done_, nullptr)(status);
  }
  if (phase_ != Phase::kOver && (left_ || machine_.settled()) && under_way_ == 0) return end();
  arm_timer();
}

// Reports each pause once; the machine's result has the outcome of the attempt.
void HoldCore::record_waiting() {
  if (machine_.state() == Redlock::State::kQueueing) {
    unwatch();
    queued_ = waited_ = true;
    client_->record_contention(key_);
    if (inquiry_) inquiry_->record_queue();
  }
  const bool was_pausing = std::exchange(pausing_, machine_.state() == Redlock::State::kPausing);
  if (!pausing_ || was_pausing) return;
  waited_ = true;
  watch();
  if (options_.on_attempt_failed) options_.on_attempt_failed(named(machine_.result()));
}

void HoldCore::become_holder() {
  phase_ = Phase::kHolding;
  inquiry_.reset();
  owner_ = machine_.owner();
  token_ = machine_.token();
  unwatch();
  set_times();
  locked_ = true;
  if (options_.on_lost || options_.on_revoke_requested) watch();
  granted_us_ = Loop::now_us();
  client_->meter().record_grant(key_, token_, microseconds(granted_us_ - asked_us_), waited_);
  std::exchange(done_, nullptr)({named(machine_.result()), Hold(shared_from_this())});
}

// Sets the end of the validity, and before it the times to renew, to warn and to declare the lock lost. A
// grant that was slow has less time left than its TTL says.
void HoldCore::set_times() {
  const TimeMs now = Loop::now();
  set_end(ttl_);
  const TimeMs warn = TimeMs{valid_until_ms_} - DurationMs{options_.warn_before.count()};
  if (options_.warn_before.count() > 0 && (!warned_ || warn > now)) {
    warn_at_ = warn;
    warned_ = false;
  }
  renew_at_ = options_.renew ? now + share_of_time(ttl_.count / 3, 2) : kNever;
}

void HoldCore::set_end(DurationMs ttl) {
  const TimeMs until = machine_.valid_until();
  valid_until_ms_ = until.count - 1;  // for users, whose clocks may be a part of 1 ms ahead
  lost_at_ = until - margin_of(ttl);
}

// Returns `ms`, but at most 1/part of the time left until the lock counts as lost, and at least 1 ms.
DurationMs HoldCore::share_of_time(int64_t ms, int64_t part) const {
  return {std::max<int64_t>(std::min(ms, (lost_at_ - Loop::now()).count / part), 1)};
}

void HoldCore::renew(DurationMs ttl, bool heal) {
  renewing_ = true;
  renewing_us_ = Loop::now_us();
  renewing_ttl_ = ttl;
  heals_ = heal;
  if (heal) renew_at_ = kNever;
  machine_.renew(Loop::now(), ttl, heal);
  // A shorter validity counts at once, because a server may have the shorter TTL already.
  if (machine_.valid_until().count <= valid_until_ms_) set_end(ttl);
}

// Asks the servers whether the lock is still held, by a renewal. Its TTL is not longer than the user
// wanted, and not shorter than the validity that the user knows. It heals no server: LOCKS BREAK goes to
// one server after the other, and each would be healed before the next gets it. The next regular renewal
// still comes. A renewal under way may have run before the hold ended, so another one follows it.
void HoldCore::verify() {
  verify_later_ = renewing_;
  if (renewing_ || machine_.state() != Redlock::State::kHeld) return;
  if (options_.renew) return renew(ttl_, false);
  const DurationMs left{std::max<int64_t>((machine_.valid_until() - Loop::now()).count, 1)};
  renew(std::min(client::ttl_for_validity(left), ttl_), false);
}

bool HoldCore::must_verify() const { return verify_later_ && !renewing_ && phase_ == Phase::kHolding; }

void HoldCore::record_renewal() {
  if (!machine_.renewal()) return;
  if (!renewing_) return record_late_loss();
  renewing_ = false;
  const Status status = machine_.state() == Redlock::State::kHeld ? named(*machine_.renewal()) : over();
  client_->meter().record_renewal(key_, token_, status.outcome, since(renewing_us_));
  const Answer answer = std::exchange(extending_, nullptr);
  if (status.ok()) {
    if (options_.renew || answer) ttl_ = renewing_ttl_;
    const TimeMs due = heals_ ? kNever : renew_at_;
    set_times();
    renew_at_ = std::min(renew_at_, due);
  } else if (options_.renew) {  // retry soon, as long as there is time
    renew_at_ = Loop::now() + share_of_time(ttl_.count / 10, 4);
  }
  if (answer) answer->set_value(status);
  if (status.outcome == Outcome::kExpired) return lose(status, {valid_until_ms_ + 1}, LossReason::kGone);
  notify_renewal(status);
}

// Reports the first renewal that fails, and the first that succeeds again.
void HoldCore::notify_renewal(const Status& status) {
  if (failing_ == !status.ok()) return;
  failing_ = !status.ok();
  const auto& callback = failing_ ? options_.on_renewal_failed : options_.on_renewal_restored;
  if (callback && !detached_) callback(status);
}

// Handles a confirmed round in which later answers show that too many servers are without the hold.
void HoldCore::record_late_loss() {
  if (machine_.renewal()->outcome == Outcome::kExpired)
    lose(*machine_.renewal(), {valid_until_ms_ + 1}, LossReason::kGone);
}

// Reports the loss of the lock. If the validity that the user knows is not over, the lock is released only
// when it is: until then, a user that relies on validity() must not meet another holder.
void HoldCore::lose(Status why, TimeMs free_at, LossReason reason) {
  if (phase_ != Phase::kHolding) return;
  client_->meter().record_loss(key_, token_, reason, since(granted_us_));
  phase_ = Phase::kEnding;
  locked_ = false;
  was_lost_ = true;
  free_at_ = free_at;
  machine_.stop_renewing();
  if (is_due(free_at_, Loop::now())) free_lost();
  why.outcome = Outcome::kExpired;
  if (options_.on_lost && !detached_) options_.on_lost(named(std::move(why)));
  drive();
}

void HoldCore::free_lost() {
  free_at_ = kNever;
  if (machine_.state() == Redlock::State::kHeld) machine_.release(Loop::now());
}

// Answers the calls of unlock(). A quorum of confirmations is enough; slow servers may answer later.
void HoldCore::answer_releases() {
  record_end(machine_.result().outcome);
  for (const Answer& answer : std::exchange(releases_, {})) answer->set_value(named(machine_.result()));
}

void HoldCore::end() {
  phase_ = Phase::kOver;
  locked_ = false;
  unwatch();
  inquiry_.reset();
  timer_.reset();
  if (extending_) std::exchange(extending_, nullptr)->set_value(over());
  for (auto& [ttl, answer] : std::exchange(extends_, {})) answer->set_value(over());
  answer_releases();
  client_->forget(shared_from_this());
}

void HoldCore::on_timer() {
  const auto self = shared_from_this();
  const TimeMs now = Loop::now();
  if (phase_ == Phase::kHolding) {
    if (is_due(warn_at_, now)) {
      warn_at_ = kNever;
      warned_ = true;
      if (options_.on_expiring && !detached_) options_.on_expiring();
    }
    if (is_due(lost_at_, now)) {
      const bool failed = machine_.renewal() && !machine_.renewal()->ok();
      return lose(failed ? *machine_.renewal() : over(), {valid_until_ms_ + 1}, expiry_reason());
    }
    if (is_due(renew_at_, now) && !renewing_) renew(ttl_);
  }
  if (is_due(free_at_, now)) free_lost();
  machine_.on_time(now, Loop::clock_us());
  drive();
}

void HoldCore::arm_timer() {
  if (timer_ == nullptr) return;
  TimeMs next = std::min(machine_.next_deadline().value_or(kNever), free_at_);
  if (phase_ == Phase::kHolding)
    next = std::min({next, renewing_ ? kNever : renew_at_, warn_at_, lost_at_});
  timer_->set(next);
}

// Subscribes to the events of the key: a waiter needs releases, a holder the events of its hold.
void HoldCore::watch() {
  if (!watches_.empty()) return;
  for (size_t i = 0; i < servers_.size(); ++i) {
    watches_.push_back(
        link(i).watch("__lock__:" + key_, [self = weak_from_this()](const std::string& message) {
          if (const auto hold = self.lock()) hold->on_event(message);
        }));
  }
}

void HoldCore::unwatch() {
  for (size_t i = 0; i < watches_.size(); ++i) link(i).unwatch(watches_[i]);
  watches_.clear();
}

void HoldCore::on_event(const std::string& message) {
  const std::string what = message.substr(0, message.find(' '));
  const bool ends = what == "released" || what == "expired" || what == "broken";
  if (phase_ == Phase::kAcquiring) {
    // Its own failed attempts are released, too; those events are ignored.
    if (ends && message != what + " " + machine_.owner()) machine_.on_freed(Loop::now(), Loop::clock_us());
    return drive();
  }
  if (phase_ != Phase::kHolding) return;
  if (what == "revoke") {
    if (options_.on_revoke_requested && !detached_) options_.on_revoke_requested();
    return;
  }
  // The event of one server does not end the hold: all servers are asked. The same after a new subscription
  // (empty message), because messages may have been missed.
  if (message.empty() || (ends && message == what + " " + owner_)) verify();
  drive();
}

Status HoldCore::named(Status status) const {
  for (size_t i = 0; i < status.servers.size(); ++i)
    status.servers[i].server = client_->place().servers[servers_[i]].text();
  return status;
}

}  // namespace holdfast
