// LOCK, RENEW, UNLOCK: the owner is given by the client. The owner on the servers has more characters
// (owner_name.h).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/parse.h"
#include "proxy/acquiring.h"
#include "proxy/call.h"
#include "proxy/gateway.h"
#include "proxy/operations.h"
#include "proxy/owner_name.h"

namespace holdfast::proxy {

namespace {

// The hold of the client's owner, if a quorum has it; else null. `tried`: slots of this request, whose
// holds are about to end.
const QuorumHold* hold_of(const KeyState& state, std::string_view owner,
                          const std::vector<std::string>& tried = {}) {
  const auto found = std::ranges::find_if(state.holds, [&](const QuorumHold& hold) {
    return value_in(hold.owner) == owner &&
           std::ranges::none_of(tried, [&](const auto& slot) { return is_attempt_of(hold.owner, slot); });
  });
  return found == state.holds.end() ? nullptr : &*found;
}

HoldName name_of(const std::string& key, const std::string& value, const QuorumHold& hold) {
  return {key, value, hold.owner, hold.token};
}

class LockCall final : public Call {
 public:
  LockCall(Gateway& gateway, const RemoteLock& lock) : Call(gateway, lock.conn), session_(lock.session) {
    wish_.key = lock.key;
    wish_.value = lock.owner;
    if (lock.ttl.count > 0) wish_.ttl = lock.ttl;
    if (lock.limit == RemoteLock::kNoLimit) {
      wish_.mode = client::LockMode::kShared;
    } else if (lock.limit > 1) {
      wish_.mode = client::LockMode::kCounted;
      wish_.limit = lock.limit;
    }
    wish_.note = lock.note;
    wish_.delay = lock.delay;
    if (lock.wait) wish_.wait = lock.wait->count == 0 ? std::nullopt : lock.wait;
  }

  std::optional<DurationMs> limit() const override {
    if (!wish_.wait) return std::nullopt;
    if (wish_.wait->count >= kMaxTtlMs / 2) return std::nullopt;
    return DurationMs{wish_.wait->count + gateway_.call_limit().count};
  }

  void begin() override {
    begun_ = client::Loop::time_us();
    const OwnHold* own = gateway_.own().find(wish_.key, client::Loop::now());
    const bool repeats = own != nullptr && own->value == wish_.value && own->token != 0;
    if (repeats) return repeat({own->key, own->value, own->owner, own->token});
    acquire();
  }

  void drop() override {
    Call::drop();
    if (const auto acquiring = std::exchange(acquiring_, nullptr)) acquiring->cancel();
  }

 private:
  std::shared_ptr<LockCall> self() { return std::static_pointer_cast<LockCall>(shared_from_this()); }

  void acquire() {
    acquiring_ = std::make_shared<Acquiring>(
        gateway_, wish_, [call = self()] { call->look_for_repeat(); },
        [call = self()](Acquiring::Result result) { call->end(result); });
    tried_.push_back(acquiring_->slot());
    acquiring_->begin();
  }

  // Other clients hold the key, and the acquisition waits. One of them may be this owner, by another proxy:
  // then this is a repeat.
  void look_for_repeat() {
    read_key(gateway_, wish_.key, [call = self()](const KeyState& state, const Silence&) {
      const QuorumHold* hold = hold_of(state, call->wish_.value, call->tried_);
      if (hold == nullptr || call->acquiring_ == nullptr || call->dropped()) return;
      std::exchange(call->acquiring_, nullptr)->cancel();
      call->repeat(name_of(call->wish_.key, call->wish_.value, *hold));
    });
  }

  // One try has failed. If no client has a quorum after all, the servers were split: try again.
  void end_try() {
    read_key(gateway_, wish_.key, [call = self()](const KeyState& state, const Silence& silence) {
      if (!call->dropped()) call->judge_try(state, silence);
    });
  }

  void judge_try(const KeyState& state, const Silence& silence) {
    if (state.kind == KeyState::Kind::kUndecided) return fail_unavailable(silence);
    if (const QuorumHold* hold = hold_of(state, wish_.value, tried_))
      return repeat(name_of(wish_.key, wish_.value, *hold));
    const bool own_rest = !state.holds.empty() && hold_of(state, wish_.value) != nullptr;
    const bool split = own_rest || (state.kind == KeyState::Kind::kFree && !state.delayed);
    if (!split) return answer_null();
    is_late() ? fail("UNAVAILABLE the servers are split between clients; retry") : acquire();
  }

  bool is_late() const {
    const client::TimeUs end = begun_ + client::us_of(gateway_.quorum().timeout());
    return client::is_due(end, client::Loop::time_us());
  }

  // Resets the TTL of the hold; its token stays.
  void repeat(const HoldName& hold) {
    renew_hold(gateway_, hold, {wish_.ttl}, [call = self(), hold](Verdict verdict, const Silence& silence) {
      if (call->dropped()) return;
      if (verdict == Verdict::kUnknown) return call->fail_unavailable(silence);
      if (verdict == Verdict::kNo) return call->acquire();
      const OwnHold* own = call->gateway_.own().find(hold.key, hold.owner, client::Loop::now());
      call->grant(hold.owner, hold.token, own != nullptr ? own->end : client::Loop::now());
    });
  }

  void end(Acquiring::Result result) {
    const auto acquiring = std::exchange(acquiring_, nullptr);
    if (dropped()) return;
    switch (result) {
      case Acquiring::Result::kHeld:
        return grant(acquiring->owner(), acquiring->token(), acquiring->valid_until());
      case Acquiring::Result::kBusy:
        return end_try();
      case Acquiring::Result::kTimeout:
        return answer_null();
      case Acquiring::Result::kDeadlock:
        return answer_error(
            "DEADLOCK deadlock detected: the owner would wait for itself; release its locks "
            "and retry");
      case Acquiring::Result::kFailed:
        return fail_unavailable(silence_of(gateway_.quorum(), acquiring->status()));
    }
  }

  void grant(const std::string& owner, uint64_t token, TimeMs end) {
    Buffer out;
    Reply reply(out, 2);
    reply.array(2);
    reply.bulk(wish_.value);
    reply.integer(static_cast<int64_t>(token));
    if (session_) gateway_.sessions().add(conn().serial, {wish_.key, owner}, end, client::Loop::now());
    answer(out.view());
  }

  void answer_null() {
    Buffer out;
    Reply(out, gateway_.protocol(conn())).null_array();
    answer(out.view());
  }

  Acquiring::Wish wish_;
  const bool session_;
  client::TimeUs begun_;
  std::shared_ptr<Acquiring> acquiring_;
  std::vector<std::string> tried_;  // the slots of its acquisitions
};

// RENEW and UNLOCK: one operation on the hold of the owner.
class OwnerCall : public Call {
 public:
  OwnerCall(Gateway& gateway, const RemoteRequest& request)
      : Call(gateway, request.conn), key_(request.argv[1]), owner_(request.argv[2]) {}

  void begin() override {
    const OwnHold* own = gateway_.own().find(key_, client::Loop::now());
    if (own == nullptr || own->value != owner_) return read();
    act({own->key, own->value, own->owner, own->token}, {own->ttl}, true);
  }

 protected:
  // Does it. `ttl` is the one that the hold has got last.
  virtual void operate(const HoldName& hold, const NewTtl& ttl, const OnVerdict& done) = 0;
  // Whether it goes on without its client.
  virtual bool goes_on() const { return false; }

 private:
  std::shared_ptr<OwnerCall> self() { return std::static_pointer_cast<OwnerCall>(shared_from_this()); }
  bool ended() const { return dropped() && !goes_on(); }

  void read() {
    read_key(gateway_, key_, [call = self()](const KeyState& state, const Silence& silence) {
      if (call->ended()) return;
      if (state.kind == KeyState::Kind::kUndecided) return call->fail_unavailable(silence);
      if (state.kind == KeyState::Kind::kFree) return call->answer_integer(0);
      const QuorumHold* hold = hold_of(state, call->owner_);
      if (hold == nullptr) return call->answer_integer(-1);
      call->act(name_of(call->key_, call->owner_, *hold), {std::nullopt, true}, false);
    });
  }

  // `assumed`: the hold is one that the proxy remembers, and may have ended.
  void act(const HoldName& hold, const NewTtl& ttl, bool assumed) {
    operate(hold, ttl, [call = self(), assumed](Verdict verdict, const Silence& silence) {
      if (call->ended()) return;
      if (verdict == Verdict::kYes) return call->answer_integer(1);
      if (verdict == Verdict::kUnknown) return call->fail_unavailable(silence);
      assumed ? call->read() : call->answer_integer(0);
    });
  }

  const std::string key_;
  const std::string owner_;
};

class UnlockCall final : public OwnerCall {
 public:
  using OwnerCall::OwnerCall;

 private:
  void operate(const HoldName& hold, const NewTtl&, const OnVerdict& done) override {
    gateway_.sessions().remove(conn().serial, {hold.key, hold.owner});
    release_hold(gateway_, hold.key, hold.owner, done);
  }
  bool goes_on() const override { return true; }
};

class RenewCall final : public OwnerCall {
 public:
  RenewCall(Gateway& gateway, const RemoteRequest& request, std::optional<DurationMs> ttl)
      : OwnerCall(gateway, request), ttl_(ttl) {}

 private:
  void operate(const HoldName& hold, const NewTtl& ttl, const OnVerdict& done) override {
    NewTtl wanted = ttl;
    if (ttl_) wanted = {ttl_->count > 0 ? ttl_ : std::nullopt};
    renew_hold(gateway_, hold, wanted,
               [&gateway = gateway_, conn = conn(), hold, done](Verdict verdict, const Silence& silence) {
                 const OwnHold* own = gateway.own().find(hold.key, hold.owner, client::Loop::now());
                 if (own != nullptr)
                   gateway.sessions().renew(conn.serial, {hold.key, hold.owner}, own->end);
                 done(verdict, silence);
               });
  }

  const std::optional<DurationMs> ttl_;  // as the request names it
};

}  // namespace

std::shared_ptr<Call> make_lock_call(Gateway& gateway, const RemoteLock& lock) {
  if (lock.async)
    return make_error_call(gateway, lock.conn, "ERR holdfast-proxy does not have ASYNC: use WAIT alone");
  if (lock.ticket || lock.hint != 0) {
    return make_error_call(
        gateway, lock.conn,
        "ERR holdfast-proxy does not have LOCK ... TICKET and TOKEN: send it to a server");
  }
  if (lock.owner.size() > kMostValueBytes) return make_error_call(gateway, lock.conn, long_value_error());
  std::string refused = refuse_ttl(gateway, lock.ttl);
  if (!refused.empty()) return make_error_call(gateway, lock.conn, std::move(refused));
  return std::make_shared<LockCall>(gateway, lock);
}

std::shared_ptr<Call> make_unlock_call(Gateway& gateway, const RemoteRequest& request) {
  if (request.argv.size() > 3) {
    return make_error_call(
        gateway, request.conn,
        "ERR holdfast-proxy does not have UNLOCK ... WAITS: a wait ends with its client");
  }
  return std::make_shared<UnlockCall>(gateway, request);
}

std::shared_ptr<Call> make_renew_call(Gateway& gateway, const RemoteRequest& request) {
  if (request.argv.size() > 4) {
    return make_error_call(gateway, request.conn,
                           "ERR holdfast-proxy does not have RENEW ... TOKEN: send it to a server");
  }
  std::optional<DurationMs> ttl;
  if (request.argv.size() == 4) {
    const auto given = parse_int_in(request.argv[3], 0, kMaxTtlMs);
    if (!given) {
      return make_error_call(gateway, request.conn,
                             "ERR ttl must be an integer from 0 to " + std::to_string(kMaxTtlMs));
    }
    ttl = DurationMs{*given};
  }
  std::string refused = refuse_ttl(gateway, ttl);
  if (!refused.empty()) return make_error_call(gateway, request.conn, std::move(refused));
  return std::make_shared<RenewCall>(gateway, request, ttl);
}

}  // namespace holdfast::proxy
