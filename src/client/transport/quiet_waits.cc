// A server without QUIET answers with a syntax error. It may be upgraded meanwhile, so it is asked again
// after a while.
#include "client/transport/quiet_waits.h"

#include "client/transport/auth.h"

namespace holdfast::client {
namespace {

constexpr DurationMs kAskedAgain{60'000};

// Whether the value is ["lock", what, key, owner] or ["lock", what, key, owner, token], and no grant.
bool is_push(const Value& value) {
  return value.kind == Value::Kind::kArray && value.elements.size() >= 4 &&
         value.elements[0].text == "lock";
}

}  // namespace

QuietWaits::QuietWaits(Loop& loop, const Address& address) : pipeline_(loop, address) {
  pipeline_.on_push(is_push, [this](const Value& push) { take_push(push); });
  pipeline_.on_break([this](const std::string& why) { lose_all(why); });
}

bool QuietWaits::are_known() const { return is_due(unknown_until_, Loop::now()); }

void QuietWaits::wait(Link::Wait id, const std::vector<std::string>& argv, Link::Done done) {
  Name name{argv[1], argv[2]};  // LOCK key owner
  ids_[name] = id;
  calls_[id] = {std::move(name), std::move(done)};
  pipeline_.ask_patiently(argv, [this, id](const Value& value) { answer(id, value); });
}

void QuietWaits::end(Link::Wait id) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  const auto named = ids_.find(call->second.name);
  if (named != ids_.end() && named->second == id) ids_.erase(named);
  calls_.erase(call);
}

// The reply to the LOCK itself.
void QuietWaits::answer(Link::Wait id, const Value& value) {
  if (value.kind == Value::Kind::kStatus && value.text == "QUEUED") return;
  if (value.kind == Value::Kind::kError && value.text == "ERR syntax error")
    unknown_until_ = Loop::now() + kAskedAgain;
  finish(id, reply_of(answer_of(value)));
}

void QuietWaits::take_push(const Value& push) {
  const auto& parts = push.elements;
  const auto named = ids_.find({parts[2].text, parts[3].text});
  if (named == ids_.end()) return;  // the wait has ended, or the push is about a hold
  const Link::Wait id = named->second;
  const std::string& what = parts[1].text;
  const int64_t token = parts.size() > 4 ? parts[4].integer : 0;
  if (what == "next") {
    const Link::Done done = calls_[id].done;  // a copy: it may end the wait
    done({Reply::Kind::kNext, token, ""});
  } else if (what == "granted") {
    finish(id, {Reply::Kind::kGrant, token, parts[3].text});
  } else if (what == "timeout") {
    finish(id, {Reply::Kind::kNull, 0, ""});
  }
}

// The callback may destroy this object.
void QuietWaits::finish(Link::Wait id, const Reply& reply) {
  const auto call = calls_.find(id);
  if (call == calls_.end()) return;
  const Link::Done done = std::move(call->second.done);
  end(id);
  done(reply);
}

// The connection broke, and with it the waits ended at the server. A callback may end other waits, begin
// new ones, or destroy this object.
void QuietWaits::lose_all(const std::string& why) {
  const Reply lost = reply_of(answer_of({Value::Kind::kLost, 0, why, {}}));
  const std::weak_ptr<const bool> life = life_;
  const Link::Wait last = calls_.empty() ? Link::Wait{} : calls_.rbegin()->first;
  while (!life.expired() && !calls_.empty() && calls_.begin()->first <= last)
    finish(calls_.begin()->first, lost);
}

}  // namespace holdfast::client
