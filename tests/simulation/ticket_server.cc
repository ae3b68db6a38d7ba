#include "ticket_server.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::simulation::ticket {

Server::Server(Events& events, Clock clock, int64_t wall_skew_us, Send send, Hangup hangup)
    : events_(events),
      clock_(clock),
      wall_skew_us_(wall_skew_us),
      send_(std::move(send)),
      hangup_(std::move(hangup)) {
  make_engine();
}

Now Server::now() const {
  return {TimeMs{clock_.at(events_.now_us()) / 1000}, kWallStartUs + wall_skew_us_ + events_.now_us()};
}

void Server::make_engine() {
  Config config;
  config.run_id = "run " + std::to_string(++runs_);
  config.boot_id = "boot";
  config.token_floor = issued_.largest;
  config.tokens_ahead = issued_.ahead;
  engine_ = std::make_unique<Engine>(std::move(config));
  const std::string failure = engine_->replay(journal_, now());
  assert(failure.empty());
  engine_->keep_journal();
  engine_->finish_loading(now());
  arm();
}

void Server::stop(bool proxied) {
  if (!engine_) return;
  issued_ = engine_->tokens().issued();
  engine_.reset();
  proxied_ = proxied;
  for (const auto& [serial, c] : std::exchange(connections_, {})) {
    if (!proxied) hangup_(c);
  }
  ids_.clear();
}

void Server::start(bool with_data, int64_t recovery_ms) {
  if (engine_) return;
  if (!with_data) {
    journal_.clear();
    recovers_until_us_ = events_.now_us() + recovery_ms * 1000;
  }
  make_engine();
  const int64_t rest_us = recovers_until_us_ - events_.now_us();  // a further restart does not end it
  if (rest_us > 0) engine_->availability().recovering_until = {now().mono.count + rest_us / 1000 + 1};
  arm();
}

void Server::receive(const ConnectionPtr& c, Connection::Packet&& packet) {
  if (frozen_until_us_ > events_.now_us()) {
    auto later = std::make_shared<Connection::Packet>(std::move(packet));
    events_.at(frozen_until_us_, [=, this] { receive(c, std::move(*later)); });
    return;
  }
  if (c->server_closed) return;
  if (packet.end) return drop(c);
  if (!engine_ && proxied_) return send_(c, "-ERR the server is down\r\n");
  if (!engine_) return hangup_(c);
  if (!ids_.contains(c.get())) open(c);
  apply(c, packet.words);
}

void Server::open(const ConnectionPtr& c) {
  const ConnId id = engine_->open("127.0.0.1:1", "127.0.0.1:2", now());
  ids_[c.get()] = id;
  connections_[id.serial] = c;
  if (!proxied_) return;
  Effects fx;  // the proxy's own greeting
  const std::vector<std::string_view> hello = {"HELLO", "3"};
  engine_->apply(id, hello, now(), fx);
  engine_->output(id).consume(engine_->output(id).size());
}

void Server::apply(const ConnectionPtr& c, const Words& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  Effects fx;
  const ConnId id = ids_.at(c.get());
  engine_->apply(id, views, now(), fx);
  if (std::find(fx.dirty.begin(), fx.dirty.end(), id) == fx.dirty.end()) fx.dirty.push_back(id);
  conclude(fx);
}

void Server::drop(const ConnectionPtr& c) {
  const auto found = ids_.find(c.get());
  if (found == ids_.end()) return;
  Effects fx;
  engine_->drop(found->second, now(), fx);
  connections_.erase(found->second.serial);
  ids_.erase(found);
  conclude(fx);
}

void Server::conclude(Effects& fx) {
  journal_ += engine_->journal_records();
  engine_->clear_journal_records();
  engine_->check_invariants();
  for (const ConnId id : fx.dirty) {
    const auto c = connections_.find(id.serial);
    if (c == connections_.end()) continue;
    Buffer& output = engine_->output(id);
    std::string bytes(output.view());
    output.consume(output.size());
    if (!bytes.empty()) send_(c->second, std::move(bytes));
  }
  arm();
}

void Server::arm() {
  const std::optional<TimeMs> deadline = engine_->next_deadline();
  if (!deadline) return;
  const int64_t at_us = std::max({clock_.when(deadline->count * 1000), events_.now_us(), frozen_until_us_});
  if (at_us >= armed_us_) return;
  armed_us_ = at_us;
  events_.at(at_us, [this, at_us] {
    if (armed_us_ != at_us) return;
    armed_us_ = INT64_MAX;
    tick();
  });
}

void Server::tick() {
  if (!engine_) return;
  if (frozen_until_us_ > events_.now_us()) return arm();
  const std::optional<TimeMs> deadline = engine_->next_deadline();
  if (!deadline || *deadline > now().mono) return arm();
  Effects fx;
  engine_->tick(now(), fx);
  conclude(fx);
}

void Server::leave_hold(const std::string& key, int64_t ttl_ms) {
  if (!engine_) return;
  leftover_ = engine_->open("127.0.0.1:1", "127.0.0.1:2", now());
  const std::string ttl = std::to_string(ttl_ms);
  apply_one(leftover_, {"LOCK", key, "leftover", ttl, "WAIT", "0"});
}

void Server::break_lock(const std::string& key) {
  if (!engine_) return;
  const ConnId id = engine_->open("127.0.0.1:1", "127.0.0.1:2", now());
  apply_one(id, {"LOCKS", "BREAK", key});
  Effects fx;
  engine_->drop(id, now(), fx);
  conclude(fx);
}

void Server::apply_one(ConnId id, const std::vector<std::string_view>& words) {
  Effects fx;
  engine_->apply(id, words, now(), fx);
  conclude(fx);
}

void Server::check_invariants() const {
  if (engine_) engine_->check_invariants();
}

}  // namespace holdfast::simulation::ticket
