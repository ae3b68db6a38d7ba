// Each watch() sends a SUBSCRIBE (for a pattern a PSUBSCRIBE), also if its channel is already subscribed:
// the confirmation says from when messages certainly come. If SUBSCRIBE, UNSUBSCRIBE and SUBSCRIBE are
// under way, that is the last confirmation and not the first. So the watcher counts them. A SUBSCRIBE is
// always answered, so it also tests whether a connection is alive.
#include "client/transport/watcher.h"

#include <utility>
#include <vector>

#include "client/transport/auth.h"

namespace holdfast::client {
namespace {

// Whether the value is ["message", channel, text], ["pmessage", pattern, channel, text] or
// ["subscribe", channel, number].
bool is_notice(const Value& value) {
  const auto& parts = value.elements;
  const auto is_text = [&](size_t i) { return parts[i].kind == Value::Kind::kBulk; };
  if (parts.size() < 3 || !is_text(0) || !is_text(1)) return false;
  if (parts[0].text == "pmessage") return parts.size() == 4 && is_text(2) && is_text(3);
  if (parts.size() != 3) return false;
  return parts[0].text == "message" ? is_text(2) : parts[2].kind == Value::Kind::kInteger;
}

}  // namespace

Watcher::Watcher(Loop& loop, Where where, DurationMs quiet, DurationMs no_answer)
    : loop_(loop), where_(std::move(where)), quiet_(quiet), no_answer_(no_answer), timer_(loop, [this] {
        on_time();
      }) {}

Link::Watch Watcher::watch(const std::string& channel, OnMessage on_message) {
  return add({false, channel},
             [on_message = std::move(on_message)](const std::string&, const std::string& message) {
               on_message(message);
             });
}

Link::Watch Watcher::watch_pattern(const std::string& pattern, Link::OnPatternMessage on_message) {
  return add({true, pattern}, std::move(on_message));
}

Link::Watch Watcher::add(Topic topic, Link::OnPatternMessage on_message) {
  const Link::Watch id = ++last_;
  Channel& channel = channels_[topic];
  channel.subscribers[id] = {std::make_shared<const Link::OnPatternMessage>(std::move(on_message)), false};
  if (!connection_) {
    timer_.set(backoff_.until());
  } else if (connection_->is_open()) {
    subscribe(topic, channel);
  }
  names_[id] = std::move(topic);
  return id;
}

void Watcher::unwatch(Link::Watch watch) {
  const auto named = names_.find(watch);
  if (named == names_.end()) return;
  const Topic topic = named->second;
  names_.erase(named);
  const auto found = channels_.find(topic);
  Channel& channel = found->second;
  channel.subscribers.erase(watch);
  const bool open = connection_ && connection_->is_open();
  if (open && channel.subscribers.empty() && !names_.empty())
    connection_->send({topic.is_pattern ? "PUNSUBSCRIBE" : "UNSUBSCRIBE", topic.name});
  if (channel.subscribers.empty() && channel.unconfirmed == 0) channels_.erase(found);
  if (!names_.empty()) return;
  connection_.reset();
  channels_.clear();
  timer_.set(kNever);
}

// Connects, tests the connection, or closes it. The timer is not set while a connection opens, because that
// has a limit of its own.
void Watcher::on_time() {
  if (!connection_) {
    connection_ = open_connection(loop_, where_(), *this);
  } else if (asked_) {
    broke("no answer in " + std::to_string(no_answer_.count) + " ms");
  } else {
    const Topic& topic = names_.begin()->second;
    asked_ = true;
    timer_.set(Loop::now() + no_answer_);
    subscribe(topic, channels_[topic]);
  }
}

void Watcher::opened() {
  asked_ = true;
  timer_.set(Loop::now() + no_answer_);
  for (auto& [topic, channel] : channels_) subscribe(topic, channel);
}

void Watcher::subscribe(const Topic& topic, Channel& channel) {
  ++channel.unconfirmed;
  connection_->send({topic.is_pattern ? "PSUBSCRIBE" : "SUBSCRIBE", topic.name});
}

void Watcher::broke(std::string why) {
  backoff_.fail(answer_of({Value::Kind::kLost, 0, std::move(why), {}}).text, Loop::now());
  connection_.reset();
  for (auto& [topic, channel] : channels_) {
    channel.unconfirmed = 0;
    for (auto& [id, subscriber] : channel.subscribers) subscriber.active = false;
  }
  std::erase_if(channels_, [](const auto& entry) { return entry.second.subscribers.empty(); });
  timer_.set(backoff_.until());
  const auto callback = lost_;  // copies, because the callback may destroy this object
  const std::string reason = backoff_.why();
  if (callback) callback(reason);
}

void Watcher::answered(Value value) {
  if (value.kind == Value::Kind::kError) return broke(std::move(value.text));
  if (!is_notice(value)) return broke("a reply without a request");
  asked_ = false;
  timer_.set(Loop::now() + quiet_);
  const std::string what = value.elements[0].text;
  const Topic topic{what.starts_with('p'), value.elements[1].text};
  if (what == "subscribe" || what == "psubscribe") return confirm(topic);
  const auto found = channels_.find(topic);
  if ((what != "message" && what != "pmessage") || found == channels_.end()) return;
  std::vector<Link::Watch> receivers;
  for (const auto& [id, subscriber] : found->second.subscribers) {
    if (subscriber.active) receivers.push_back(id);
  }
  deliver(topic, receivers, value.elements[topic.is_pattern ? 2 : 1].text, value.elements.back().text);
}

void Watcher::confirm(const Topic& topic) {
  backoff_.succeed();
  const auto found = channels_.find(topic);
  if (found == channels_.end() || --found->second.unconfirmed > 0) return;
  if (found->second.subscribers.empty()) {
    channels_.erase(found);
    return;
  }
  std::vector<Link::Watch> fresh;
  for (auto& [id, subscriber] : found->second.subscribers) {
    if (!std::exchange(subscriber.active, true)) fresh.push_back(id);
  }
  deliver(topic, fresh, topic.name, "");
}

// Calls the subscribers. A callback may add and remove watches, or destroy this object.
void Watcher::deliver(const Topic& topic, const std::vector<Link::Watch>& receivers,
                      const std::string& channel, const std::string& message) {
  const std::weak_ptr<const bool> life = life_;
  for (const Link::Watch id : receivers) {
    if (!names_.contains(id)) continue;
    const std::shared_ptr<const Link::OnPatternMessage> on_message =
        channels_[topic].subscribers[id].on_message;
    (*on_message)(channel, message);
    if (life.expired()) return;
  }
}

}  // namespace holdfast::client
