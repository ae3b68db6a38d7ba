// A Link never answers from within send(), so no function here is entered twice.
#include "client/api/attempt_lock.h"

#include <utility>

#include "client/api/client_core.h"
#include "client/base/random.h"

namespace holdfast {

using client::Loop;
using client::Redlock;

AttemptLock::AttemptLock(ClientCore& client, LockUser& user, const client::RedlockConfig& config,
                         std::string key, std::vector<std::string> mode, std::string note,
                         std::vector<size_t> servers)
    : client_(client),
      user_(&user),
      key_(std::move(key)),
      note_(std::move(note)),
      servers_(std::move(servers)),
      machine_(config, key_, std::move(mode), client::random_below),
      timer_(client.loop(), [this] { on_time(); }) {}

LockDriver::State AttemptLock::state() const {
  switch (machine_.state()) {
    case Redlock::State::kIdle:
    case Redlock::State::kLocking:
    case Redlock::State::kFencing:
      return State::kAcquiring;
    case Redlock::State::kQueueing:
      return State::kQueued;
    case Redlock::State::kPausing:
      return State::kPausing;
    case Redlock::State::kHeld:
      return State::kHeld;
    case Redlock::State::kReleasing:
      return State::kReleasing;
    case Redlock::State::kOver:
      break;
  }
  return State::kOver;
}

void AttemptLock::acquire() {
  machine_.acquire(Loop::now(), Loop::clock_us());
  drive();
}

void AttemptLock::renew(DurationMs ttl, bool repair) {
  machine_.renew(Loop::now(), ttl, repair);
  drive();
}

void AttemptLock::release(DurationMs at_least) {
  if (machine_.state() != Redlock::State::kOver) machine_.release(Loop::now(), at_least);
  drive();
}

// Does not end the requests at once: servers beyond the quorum should still grant the lock, so that it
// survives the failure of some servers.
void AttemptLock::leave() {
  left_ = true;
  machine_.stop_renewing();
  while (!waits_.empty()) end_wait(waits_.begin()->first);
  drive();
}

void AttemptLock::retire() {
  user_ = nullptr;
  watch_.reset();
}

client::Link& AttemptLock::link(size_t server) { return client_.link(servers_[server]); }

// --- requests ---

void AttemptLock::drive() {
  for (const uint64_t id : machine_.take_ends()) end_wait(id);
  for (const client::Send& next : machine_.take_sends()) send(next);
  const Redlock::State state = machine_.state();
  if (state == Redlock::State::kPausing && watch_ == nullptr) {
    watch_ = std::make_unique<KeyWatch>(client_, servers_, key_,
                                        [self = weak_from_this()](const std::string& message) {
                                          if (const auto lock = self.lock()) lock->on_event(message);
                                        });
  }
  const bool repeats = state == Redlock::State::kPausing || state == Redlock::State::kLocking ||
                       state == Redlock::State::kFencing;
  if (!repeats) watch_.reset();
  timer_.set(machine_.next_deadline().value_or(kNever));
}

void AttemptLock::send(const client::Send& send) {
  ++under_way_;
  const bool locks = send.argv.front() == "LOCK" && !note_.empty();
  transmit(send, locks && client_.takes_notes(servers_[send.server]));
}

void AttemptLock::transmit(const client::Send& send, bool with_note) {
  std::vector<std::string> argv = send.argv;
  client::Link::Done done = [self = shared_from_this(), id = send.id](const client::Reply& reply) {
    self->receive(id, reply);
  };
  if (with_note) {
    argv.insert(argv.end(), {"NOTE", note_});
    done = [self = shared_from_this(), send](const client::Reply& reply) {
      self->receive_noted(send, reply);
    };
  }
  client::Link& there = link(send.server);
  if (!send.waits) return there.send(argv, client_.config().server_timeout, done);
  waits_[send.id] = {send.server, there.wait(argv, done)};
}

// The reply to a LOCK with a NOTE. A server without that option gets the request again without it.
void AttemptLock::receive_noted(const client::Send& noted, const client::Reply& reply) {
  if (reply.error != ServerError::kSyntax) return receive(noted.id, reply);
  client_.record_no_notes(servers_[noted.server]);
  if (const auto wait = waits_.find(noted.id); wait != waits_.end())
    link(noted.server).end(wait->second.wait);
  transmit(noted, false);
}

void AttemptLock::receive(uint64_t id, const client::Reply& reply) {
  --under_way_;
  if (const auto wait = waits_.find(id); wait != waits_.end()) wait->second.answered = true;
  machine_.on_reply(id, reply, Loop::now(), Loop::clock_us());
  drive();
  tell();
}

void AttemptLock::end_wait(uint64_t id) {
  const auto wait = waits_.find(id);
  if (wait == waits_.end()) return;
  link(wait->second.server).end(wait->second.wait);
  if (!wait->second.answered) --under_way_;
  waits_.erase(wait);
}

// --- events and time ---

// Its own failed attempts are released, too; those events are ignored.
void AttemptLock::on_event(const std::string& message) {
  const std::string what = message.substr(0, message.find(' '));
  const bool ends = what == "released" || what == "expired" || what == "broken";
  if (!ends || message == what + " " + machine_.owner()) return;
  machine_.on_freed(Loop::now(), Loop::clock_us());
  drive();
  tell();
}

void AttemptLock::on_time() {
  const auto self = shared_from_this();
  machine_.on_time(Loop::now(), Loop::clock_us());
  drive();
  tell();
}

void AttemptLock::tell() {
  if (user_ != nullptr) user_->driver_changed();
}

}  // namespace holdfast
