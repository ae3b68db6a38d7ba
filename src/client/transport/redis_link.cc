#include "client/transport/redis_link.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "client/transport/redis_link_core.h"
#include "core/base/hash_slot.h"

namespace holdfast::client {
namespace {

using Kind = Value::Kind;

// The timeout of the link's own requests: attempts of a wait, and releases.
constexpr DurationMs kOwnTimeout{1000};
// The most leases remembered; beyond it the link forgets the one with the lowest id (a random number).
constexpr size_t kMaxLeases = 100'000;

bool is_grant(const Value& value) { return reply_of(value).kind == Reply::Kind::kGrant; }

// Whether the call makes or ends a hold or a lease. These calls share one connection and keep their order,
// because a release must not come before the request that may have made the hold. The other calls, above
// all renewals, use another connection, so that no WAIT delays them.
bool makes_or_ends(const ScriptCall& call) {
  constexpr std::array<std::string_view, 5> kThese{"lock", "unlock", "lease_grant", "lease_confirm",
                                                   "lease_cancel"};
  return std::ranges::find(kThese, call.script) != kThese.end();
}

ScriptCall undo(const ScriptCall& call) {
  const bool lease = call.script == "lease_grant";
  return {lease ? "lease_cancel" : "unlock", call.keys, {call.argv[0]}};
}

}  // namespace

RedisCore::RedisCore(Loop& loop, const Address& address)
    : loop_(loop),
      address_(address),
      nodes_(loop, address),
      watcher_(std::make_unique<Watcher>(loop, [this] { return nodes_.listener(); })) {}

void RedisCore::ask(const Argv& argv, DurationMs timeout, Link::Answered done) {
  Translation what = translate(argv, [this](const std::string& id) {
    const auto found = leases_.find(id);
    return found == leases_.end() ? nullptr : &found->second;
  });
  switch (what.kind) {
    case Translation::Kind::kRefused:
      return later({Kind::kError, 0, std::move(what.why), {}}, std::move(done));
    case Translation::Kind::kPlain:
      return nodes_.ask(std::nullopt, argv, timeout,
                        [this, done = std::move(done)](const Value& value, RedisNodes::Spot) {
                          if (!closed_) done(value);
                        });
    case Translation::Kind::kList:
      return list(what, timeout, std::move(done));
    case Translation::Kind::kScript:
      break;
  }
  if (what.call.script == "lock") {
    const auto granted = granted_.find(argv.size() > 2 ? argv[2] : "");
    if (granted != granted_.end()) granted->second->take_over();
  }
  run_asked(std::make_shared<const ScriptCall>(std::move(what.call)), timeout, std::move(done));
}

// Answers a request that was not sent, in a later loop iteration.
void RedisCore::later(Value value, Link::Answered done) {
  loop_.post([core = weak_from_this(), value = std::move(value), done = std::move(done)] {
    const auto there = core.lock();
    if (there && !there->closed_) done(value);
  });
}

void RedisCore::run_asked(const CallPtr& call, DurationMs timeout, Link::Answered done) {
  const TimeMs deadline = Loop::now() + timeout;
  run(call, timeout,
      [this, call, deadline, done = std::move(done)](const Value& value, const RedisNodes::Spot& at) {
        if (closed_) return;
        record_lease(*call, value);
        const bool grants = call->script == "lock" || call->script == "lease_grant";
        if (address_.acks > 0 && grants && is_grant(value)) return confirm(call, value, at, deadline, done);
        done(value);
      });
}

// Runs a script by its digest, and by EVAL if the server does not know the script or has forgotten it.
void RedisCore::run(const CallPtr& call, DurationMs timeout, const RedisNodes::Done& done) {
  const int slot = hash_slot(call->keys.front());
  const TimeMs deadline = Loop::now() + timeout;
  const bool apart = address_.acks > 0 && makes_or_ends(*call);
  nodes_.ask(
      slot, evalsha_of(*call), timeout,
      [this, call, slot, deadline, done, apart](const Value& value, RedisNodes::Spot at) {
        if (!has_code(value, "NOSCRIPT")) return done(value, at);
        nodes_.ask(slot, eval_of(*call), left_until(deadline), done, apart);
      },
      apart);
}

// Waits until replicas acknowledge the grant; otherwise releases it. WAIT counts only the writes of its own
// connection, so it goes over the connection of the grant.
void RedisCore::confirm(const CallPtr& call, const Value& grant, RedisNodes::Spot spot, TimeMs deadline,
                        const Link::Answered& done) {
  const int64_t within_ms = std::min(address_.ack_timeout.count, left_until(deadline).count);
  RedisNodes::ask_at(
      spot, {"WAIT", std::to_string(address_.acks), std::to_string(within_ms)}, left_until(deadline),
      [this, call, grant, within_ms, done](const Value& value) {
        if (closed_) return;
        if (value.kind == Kind::kInteger && value.integer >= address_.acks) return done(grant);
        const std::string why =
            value.kind == Kind::kInteger
                ? "only " + std::to_string(value.integer) + " of " + std::to_string(address_.acks) +
                      " replicas acknowledged the grant within " + std::to_string(within_ms) + " ms"
                : "whether replicas have the grant is not known: " + value.text;
        undo_grant(call, why, done);
      });
}

void RedisCore::undo_grant(const CallPtr& call, const std::string& why, const Link::Answered& done) {
  begin_pending();
  if (call->script == "lease_grant") leases_.erase(call->argv[0]);
  run(std::make_shared<const ScriptCall>(undo(*call)), kOwnTimeout,
      [this, why, done](const Value& value, RedisNodes::Spot) {
        const bool given = value.kind != Kind::kLost && value.kind != Kind::kError;
        const std::string then = given ? "; the grant was released" : "; the grant expires with its ttl";
        if (!closed_) done({Kind::kError, 0, "NOREPLICAS " + why + then, {}});
        end_pending();
      });
}

// Remembers the keys of a granted lease. Forgets a lease that has ended, but not one that expired, because
// it must still be cancelled.
void RedisCore::record_lease(const ScriptCall& call, const Value& value) {
  if (!std::string_view(call.script).starts_with("lease_")) return;
  const std::string& id = call.argv[0];
  if (call.script == "lease_grant") {
    // Also if the answer is lost: the lease may have been granted.
    if (!is_grant(value) && value.kind != Kind::kLost) return;
    if (leases_.size() >= kMaxLeases) leases_.erase(leases_.begin());
    leases_[id] = call.keys;
  } else if (call.script == "lease_renew") {
    return;
  } else if (value.kind == Kind::kInteger || value.kind == Kind::kStatus || has_code(value, "CONFIRMED") ||
             has_code(value, "CANCELLED") || has_code(value, "NOLEASE")) {
    leases_.erase(id);
  }
}

// --- waits ---

Link::Wait RedisCore::wait(const Argv& argv, const Link::Done& done) {
  const Link::Wait id = ++last_wait_;
  if (auto lock = waiting_lock(argv)) {
    waits_[id] = std::make_unique<RedisWait>(*this, std::move(*lock), done);
  } else {
    later({Kind::kError, 0, "ERR on Redis only LOCK waits", {}},
          [done](const Value& value) { done(reply_of(value)); });
  }
  return id;
}

void RedisCore::end(Link::Wait wait) { waits_.erase(wait); }

void RedisCore::attempt(const ScriptCall& call, const Link::Answered& done) {
  begin_pending();
  run(std::make_shared<const ScriptCall>(call), kOwnTimeout,
      [this, done](const Value& value, RedisNodes::Spot) {
        const std::weak_ptr<RedisCore> life = weak_from_this();
        done(value);
        if (!life.expired()) end_pending();
      });
}

void RedisCore::unlock(const std::string& key, const std::string& owner) {
  begin_pending();
  run(std::make_shared<const ScriptCall>(unlock_call(key, owner)), kOwnTimeout,
      [this](const Value&, RedisNodes::Spot) { end_pending(); });
}

void RedisCore::ask_whether_there(const std::string& key, const Link::Answered& done) {
  nodes_.ask(hash_slot(key), {"EXISTS", key}, kOwnTimeout,
             [this, done](const Value& value, RedisNodes::Spot) {
               if (!closed_) done(value);
             });
}

// --- the end ---

void RedisCore::close() {
  closed_ = true;
  waits_.clear();
  watcher_.reset();
  if (pending_ > 0) self_ = shared_from_this();
}

// Must be the last statement of its caller, because it may destroy this object.
void RedisCore::end_pending() {
  if (--pending_ == 0) self_.reset();
}

// --- the link ---

RedisLink::RedisLink(Loop& loop, const Address& address)
    : core_(std::make_shared<RedisCore>(loop, address)) {
  assert(loop.on_thread());
}

RedisLink::~RedisLink() { core_->close(); }

void RedisLink::ask(const std::vector<std::string>& argv, DurationMs timeout, Answered done) {
  core_->ask(argv, timeout, std::move(done));
}

Link::Wait RedisLink::wait(const std::vector<std::string>& argv, const Done& done) {
  return core_->wait(argv, done);
}

void RedisLink::end(Wait wait) { core_->end(wait); }

Link::Watch RedisLink::watch(const std::string& channel,
                             std::function<void(const std::string&)> on_message) {
  return core_->watcher().watch(channel, std::move(on_message));
}

Link::Watch RedisLink::watch_pattern(const std::string& pattern, OnPatternMessage on_message) {
  return core_->watcher().watch_pattern(pattern, std::move(on_message));
}

void RedisLink::unwatch(Watch watch) { core_->watcher().unwatch(watch); }

void RedisLink::on_watch_loss(std::function<void(const std::string& why)> callback) {
  core_->watcher().on_loss(std::move(callback));
}

}  // namespace holdfast::client
