#include "ticket_client.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace holdfast::simulation::ticket {

using client::Asked;
using client::Value;

namespace {

constexpr int64_t kFirstPauseUs = 10'000;
constexpr int64_t kLongestPauseUs = 80'000;
constexpr size_t kMostConnections = 16;  // to one server

// Reads one value of RESP3 and removes it from the text; nullopt if the text is not complete.
std::optional<std::pair<Value, bool>> take_value(std::string_view& text) {
  const size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const char kind = text[0];
  const std::string_view line = text.substr(1, end - 1);
  std::string_view rest = text.substr(end + 2);
  int64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  Value value{Value::Kind::kStatus, 0, std::string(line), {}};
  if (kind == '-') value.kind = Value::Kind::kError;
  if (kind == ':') value = {Value::Kind::kInteger, number, {}, {}};
  if (kind == '_') value = {Value::Kind::kNull, 0, {}, {}};
  if (kind == '$') {
    const auto size = static_cast<size_t>(number);
    if (rest.size() < size + 2) return std::nullopt;
    value = {Value::Kind::kBulk, 0, std::string(rest.substr(0, size)), {}};
    rest.remove_prefix(size + 2);
  }
  if (kind == '*' || kind == '>' || kind == '%') {
    value = {kind == '>' ? Value::Kind::kPush : Value::Kind::kArray, 0, {}, {}};
    for (int64_t n = kind == '%' ? number * 2 : number; n > 0; --n) {
      auto element = take_value(rest);
      if (!element) return std::nullopt;
      value.elements.push_back(std::move(element->first));
    }
  }
  text = rest;
  return std::pair{std::move(value), kind == '>'};
}

}  // namespace

Client::Client(ClientPlan plan, Surroundings& around)
    : plan_(std::move(plan)),
      around_(around),
      slot_("c" + std::to_string(plan_.index), plan_.config.servers),
      pulses_(plan_.config.servers, client::Pulse(plan_.config.times)),
      links_(plan_.config.servers) {}

uint64_t Client::wall_us() const {
  return static_cast<uint64_t>(kWallStartUs + plan_.wall_skew_us + around_.events.now_us());
}

void Client::begin() {
  act_us_ = around_.events.now_us();
  arm();
}

void Client::vanish() {
  gone_ = true;
  if (std::exchange(inside_, false)) around_.left(*this);
  record_.asked_us = -1;
}

bool Client::has_votes() const { return wait_ && wait_->has_votes(); }

// --- connections ---

Client::Open* Client::newest(size_t server) {
  const auto found = link(server).open.find(pulses_[server].newest());
  return found == link(server).open.end() ? nullptr : &found->second;
}

Client::Open* Client::open(size_t server) {
  Link& l = link(server);
  l.reopen_us = INT64_MAX;
  const uint64_t number = pulses_[server].open(now());
  Open& made = l.open[number];
  made.connection = around_.network.connect(plan_.index, server, number);
  made.pending.emplace_back();
  around_.network.send(made.connection, Way::kThere, {{"HELLO", "3"}, {}, false});
  // Beside the one that has answered, the newest ones stay.
  while (l.open.size() > kMostConnections) {
    auto oldest = l.open.begin();
    if (oldest->first == pulses_[server].answering()) ++oldest;
    around_.network.close(oldest->second.connection, Way::kThere);
    l.open.erase(oldest);
  }
  return &made;
}

void Client::close_before(size_t server, uint64_t number) {
  Link& l = link(server);
  while (!l.open.empty() && l.open.begin()->first < number) {
    around_.network.close(l.open.begin()->second.connection, Way::kThere);
    l.open.erase(l.open.begin());
  }
}

void Client::opened(const ConnectionPtr& c) {
  if (!gone_) link(c->server).pause_us = 0;
}

void Client::refused(const ConnectionPtr& c) {
  if (gone_) return;
  int64_t& pause_us = link(c->server).pause_us;
  pause_us = std::clamp(pause_us * 2, kFirstPauseUs, kLongestPauseUs);
  lose(c, pause_us);
  pump();
}

// The connection is closed by the server.
void Client::lose(const ConnectionPtr& c, int64_t pause_us) {
  const size_t server = c->server;
  const auto found = link(server).open.find(c->number);
  if (found == link(server).open.end()) return;
  const bool was_newest = newest(server) == &found->second;
  const auto pending = std::move(found->second.pending);
  link(server).open.erase(found);
  around_.network.close(c, Way::kThere);
  if (was_newest) link(server).reopen_us = around_.events.now_us() + pause_us;
  for (const std::optional<Asked>& asked : pending) {
    if (asked && wait_)
      wait_->on_answer(*asked, client::Refusal{client::Refusal::Code::kLost, "the connection broke"},
                       now());
  }
}

// --- messages ---

void Client::send(const Asked& asked) {
  Open* o = newest(asked.server);
  if (o == nullptr && link(asked.server).reopen_us != INT64_MAX) return;  // then it is asked again
  if (o == nullptr) o = open(asked.server);
  o->pending.emplace_back(asked);
  pulses_[asked.server].sent(asked.at);
  if (std::holds_alternative<client::WaitRequest>(asked.request))
    pulses_[asked.server].record_heartbeat(now());
  Words words = encode(asked.request, plan_.config.terms);
  if (around_.tell) {
    std::string line = "c" + std::to_string(plan_.index) + " > " + std::to_string(asked.server) + ":";
    for (const std::string& word : words) line += " " + word;
    around_.tell(line);
  }
  around_.network.send(o->connection, Way::kThere, {std::move(words), {}, false});
}

void Client::beat(size_t server) {
  client::HeartbeatRequest request;
  request.seen = pulses_[server].server_time();
  pulses_[server].record_heartbeat(now());
  send({server, request, now()});
}

void Client::receive(const ConnectionPtr& c, Connection::Packet&& packet) {
  if (gone_) return;
  const size_t server = c->server;
  if (packet.end) {
    lose(c, kFirstPauseUs);
    return pump();
  }
  const auto found = link(server).open.find(c->number);
  if (found == link(server).open.end()) return;
  found->second.unread += packet.bytes;
  const std::string bytes = std::move(found->second.unread);
  std::string_view text = bytes;
  while (auto value = take_value(text)) {
    handle(server, c->number, value->first, value->second);
    if (!link(server).open.contains(c->number)) return pump();
  }
  link(server).open.at(c->number).unread = std::string(text);
  pump();
}

void Client::handle(size_t server, uint64_t number, const Value& value, bool push) {
  if (push) {
    if (pulses_[server].accepts(number)) pushed(server, value);
    return;
  }
  auto& pending = link(server).open.at(number).pending;
  const std::optional<Asked> asked = std::move(pending.front());
  pending.pop_front();
  if (asked) answered(*asked, number, value);
}

void Client::answered(const Asked& asked, uint64_t number, const Value& value) {
  client::Pulse& pulse = pulses_[asked.server];
  if (!pulse.answered(number, asked.at, now())) return;
  close_before(asked.server, pulse.answering());
  const client::Answer answer = read_answer(asked.request, value);
  if (around_.tell) {
    const auto* wait = std::get_if<client::WaitAnswer>(&answer);
    const auto* count = std::get_if<client::Count>(&answer);
    const auto* refusal = std::get_if<client::Refusal>(&answer);
    std::string line = "c" + std::to_string(plan_.index) + " < " + std::to_string(asked.server) + ":";
    if (wait) line += std::string(wait->token != 0 ? " vote " : " queued ") + std::to_string(wait->token);
    if (count) line += " " + std::to_string(count->number);
    if (refusal) line += " " + refusal->text;
    around_.tell(line);
  }
  if (const auto* beat = std::get_if<client::HeartbeatAnswer>(&answer)) {
    const bool restarted = pulse.record_run(beat->run_id);
    pulse.record_time(asked.at, beat->now);
    if (restarted && wait_) wait_->on_restart(asked.server, now());
    return;
  }
  if (const auto* wait = std::get_if<client::WaitAnswer>(&answer)) pulse.record_time(asked.at, wait->now);
  if (wait_) wait_->on_answer(asked, answer, now());
}

void Client::pushed(size_t server, const Value& value) {
  const auto push = client::read_push(value);
  if (!push) return;
  const auto* vote = std::get_if<client::VotePush>(&push->push);
  if (around_.tell) {
    const auto* inquire = std::get_if<client::InquirePush>(&push->push);
    around_.tell("c" + std::to_string(plan_.index) + " < " + std::to_string(server) + ": push " +
                 (vote ? "vote " + vote->owner + " " + std::to_string(vote->token)
                       : "inquire " + inquire->owner + " " + std::to_string(inquire->token)));
  }
  if (vote != nullptr) pulses_[server].record_time(vote->now);
  if (wait_) wait_->on_push(server, push->push, now());
}

// --- the user ---

void Client::acquire() {
  if (record_.asked_us < 0) record_.asked_us = around_.events.now_us();
  act_us_ = INT64_MAX;
  wait_ =
      std::make_unique<client::TicketWait>(plan_.config, slot_, std::span<const client::Pulse>(pulses_));
  wait_->acquire(now(), wall_us());
}

void Client::act() {
  act_us_ = INT64_MAX;
  if (!inside_) return acquire();
  inside_ = false;
  around_.left(*this);
  wait_->release(now());
  act_us_ = around_.events.now_us() + around_.think_us();
}

// Sees what has become of the wait.
void Client::observe() {
  if (!wait_) return;
  wait_->check_invariants();
  const bool holding = wait_->state() == client::TicketWait::State::kHolding;
  if (holding) valid_us_ = plan_.clock.when(wait_->valid_until().count);
  if (holding && !inside_) {
    inside_ = true;
    told_of_loss_ = false;
    around_.entered(*this);
    const int64_t now_us = around_.events.now_us();
    record_.asked_us = -1;
    act_us_ = now_us + around_.hold_us();
    renew_us_ = now_us + client::us_of(plan_.config.ttl).count / 3;
  } else if (inside_ && !told_of_loss_ && (!holding || wait_->renewal() == Outcome::kExpired)) {
    lose_hold();
  } else if (!inside_ && act_us_ == INT64_MAX && wait_->outcome()) {
    act_us_ = around_.events.now_us() + 1000;  // the acquisition has failed
  }
}

// The lock is lost, but the user relies on the validity that it has read.
void Client::lose_hold() {
  told_of_loss_ = true;
  ++record_.lost;
  renew_us_ = INT64_MAX;
  act_us_ = std::max(valid_us_, around_.events.now_us());
}

// --- time ---

void Client::wake() {
  if (gone_) return;
  if (wait_) wait_->on_time(now());
  observe();
  const int64_t now_us = around_.events.now_us();
  if (inside_ && now_us >= renew_us_) {
    wait_->renew(now(), plan_.config.ttl);
    renew_us_ = now_us + client::us_of(plan_.config.ttl).count / 3;
  }
  if (now_us >= act_us_) act();
  look_after_links();
  pump();
}

void Client::look_after_links() {
  if (!wait_ || wait_->state() == client::TicketWait::State::kOver) return;
  for (size_t server = 0; server < links_.size(); ++server) {
    const bool silent =
        is_due(pulses_[server].open_at(wait_->patience()), now()) && newest(server) != nullptr;
    if (silent || around_.events.now_us() >= link(server).reopen_us) {
      open(server);
      wait_->on_connection(server, now());
    }
    if (is_due(pulses_[server].heartbeat_at(wait_->heartbeat_every()), now())) beat(server);
  }
}

void Client::pump() {
  observe();
  while (wait_) {
    const std::vector<Asked> requests = wait_->take_requests();
    if (requests.empty()) break;
    for (const Asked& asked : requests) send(asked);
    observe();
  }
  arm();
}

int64_t Client::next_us() const {
  int64_t next = std::min(act_us_, inside_ ? renew_us_ : INT64_MAX);
  if (!wait_ || wait_->state() == client::TicketWait::State::kOver) return next;
  client::TimeUs at = wait_->next_deadline();
  for (size_t server = 0; server < links_.size(); ++server) {
    const bool has_newest = links_[server].open.contains(pulses_[server].newest());
    if (has_newest) at = std::min(at, pulses_[server].open_at(wait_->patience()));
    at = std::min(at, pulses_[server].heartbeat_at(wait_->heartbeat_every()));
    next = std::min(next, links_[server].reopen_us);
  }
  return at >= client::kNeverUs ? next : std::min(next, plan_.clock.when(at.count));
}

void Client::arm() {
  if (gone_) return;
  const int64_t at_us = next_us();
  if (at_us == INT64_MAX || at_us >= armed_us_) return;
  armed_us_ = at_us;
  around_.events.at(at_us, [this, at_us] {
    if (armed_us_ != at_us) return;
    armed_us_ = INT64_MAX;
    wake();
  });
}

}  // namespace holdfast::simulation::ticket
