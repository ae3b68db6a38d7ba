// Each watch() sends a SUBSCRIBE, also for a channel that is subscribed already, as its confirmation says
// from when messages are sure to come. With SUBSCRIBE, UNSUBSCRIBE, SUBSCRIBE under way that is the last
// confirmation and not the first: so they are counted. And as it is always answered, it also is how a
// connection is asked whether it lives.
#include "client/transport_watcher.h"

#include <utility>
#include <vector>

#include "client/transport_auth.h"

namespace holdfast::client {
namespace {

// ["message", channel, text], ["subscribe", channel, number]
bool is_notice(const Value& value) {
  const auto& parts = value.elements;
  if (parts.size() != 3 || parts[0].kind != Value::Kind::kBulk || parts[1].kind != Value::Kind::kBulk)
    return false;
  return parts[2].kind == (parts[0].text == "message" ? Value::Kind::kBulk : Value::Kind::kInteger);
}

}  // namespace

Watcher::Watcher(Loop& loop, Where where, DurationMs quiet, DurationMs no_answer)
    : loop_(loop), where_(std::move(where)), quiet_(quiet), no_answer_(no_answer), timer_(loop, [this] {
        on_time();
      }) {}

Link::Watch Watcher::watch(const std::string& channel, Told told) {
  const Link::Watch id = ++last_;
  names_[id] = channel;
  channels_[channel].subscribers[id] = {std::make_shared<const Told>(std::move(told)), false};
  if (!connection_) {
    timer_.set(backoff_.until());
  } else if (connection_->is_open()) {
    subscribe(channel, channels_[channel]);
  }
  return id;
}

void Watcher::unwatch(Link::Watch watch) {
  const auto named = names_.find(watch);
  if (named == names_.end()) return;
  const std::string name = named->second;
  names_.erase(named);
  const auto found = channels_.find(name);
  Channel& channel = found->second;
  channel.subscribers.erase(watch);
  const bool open = connection_ && connection_->is_open();
  if (open && channel.subscribers.empty() && !names_.empty()) connection_->send({"UNSUBSCRIBE", name});
  if (channel.subscribers.empty() && channel.unconfirmed == 0) channels_.erase(found);
  if (!names_.empty()) return;
  connection_.reset();
  channels_.clear();
  timer_.set(kNever);
}

// While a connection is being made there is no alarm, as that has a limit of its own.
void Watcher::on_time() {
  if (!connection_) {
    connection_ = open_connection(loop_, where_(), *this);
  } else if (asked_) {
    broke("no answer in " + std::to_string(no_answer_.count) + " ms");
  } else {
    const std::string& name = names_.begin()->second;
    asked_ = true;
    timer_.set(Loop::now() + no_answer_);
    subscribe(name, channels_[name]);
  }
}

void Watcher::opened() {
  asked_ = true;
  timer_.set(Loop::now() + no_answer_);
  for (auto& [name, channel] : channels_) subscribe(name, channel);
}

void Watcher::subscribe(const std::string& name, Channel& channel) {
  ++channel.unconfirmed;
  connection_->send({"SUBSCRIBE", name});
}

void Watcher::broke(std::string why) {
  backoff_.fail(answer_of({Value::Kind::kLost, 0, std::move(why), {}}).text, Loop::now());
  connection_.reset();
  for (auto& [name, channel] : channels_) {
    channel.unconfirmed = 0;
    for (auto& [id, subscriber] : channel.subscribers) subscriber.active = false;
  }
  std::erase_if(channels_, [](const auto& entry) { return entry.second.subscribers.empty(); });
  timer_.set(backoff_.until());
  const auto told = lost_;  // copies: it may end all this
  const std::string reason = backoff_.why();
  if (told) told(reason);
}

void Watcher::answered(Value value) {
  if (value.kind == Value::Kind::kError) return broke(std::move(value.text));
  if (!is_notice(value)) return broke("a reply that nobody asked for");
  asked_ = false;
  timer_.set(Loop::now() + quiet_);
  const std::string what = value.elements[0].text;
  const std::string name = value.elements[1].text;
  if (what == "subscribe") return confirm(name);
  const auto found = channels_.find(name);
  if (what != "message" || found == channels_.end()) return;
  std::vector<Link::Watch> whom;
  for (const auto& [id, subscriber] : found->second.subscribers) {
    if (subscriber.active) whom.push_back(id);
  }
  tell(name, whom, value.elements[2].text);
}

void Watcher::confirm(const std::string& name) {
  backoff_.succeed();
  const auto found = channels_.find(name);
  if (found == channels_.end() || --found->second.unconfirmed > 0) return;
  if (found->second.subscribers.empty()) {
    channels_.erase(found);
    return;
  }
  std::vector<Link::Watch> fresh;
  for (auto& [id, subscriber] : found->second.subscribers) {
    if (!std::exchange(subscriber.active, true)) fresh.push_back(id);
  }
  tell(name, fresh, "");
}

// Whoever is told may begin and end watches, or end all this.
void Watcher::tell(const std::string& name, const std::vector<Link::Watch>& whom,
                   const std::string& message) {
  const std::weak_ptr<const bool> life = life_;
  for (const Link::Watch id : whom) {
    if (!names_.contains(id)) continue;
    const std::shared_ptr<const Told> told = channels_[name].subscribers[id].told;
    (*told)(message);
    if (life.expired()) return;
  }
}

}  // namespace holdfast::client
