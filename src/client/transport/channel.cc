// One timer serves all deadlines. It may fire with no work to do, because neither an answer nor the end of
// a wait moves it.
#include "client/transport/channel.h"

#include <algorithm>
#include <cassert>
#include <variant>

#include "client/transport/auth.h"

namespace holdfast::client {

namespace {

const LockTerms kNoTerms;

Address with_pushes(Address address) {
  address.resp3 = true;
  return address;
}

}  // namespace

// One connection. Answers come in the order of the requests.
class Channel::Line final : public ConnectionUser {
 public:
  Line(Channel& channel, uint64_t number)
      : channel_(channel),
        number_(number),
        connection_(open_connection(channel.loop_, channel.address_, *this)) {}

  uint64_t number() const { return number_; }
  bool has_answered() const { return has_answered_; }
  bool is_full() const { return sent_.size() >= kMostUnanswered; }
  // The time of the oldest request without an answer; kNeverUs: there is none. Opening has a limit of its
  // own.
  TimeUs silent_since() const {
    return sent_.empty() || !connection_->is_open() ? kNeverUs : std::max(heard_, sent_.front().at);
  }
  std::deque<Sent> take_sent() { return std::exchange(sent_, {}); }

  void send(Sent sent, std::vector<std::string> words) {
    sent_.push_back(std::move(sent));
    if (connection_->is_open()) return connection_->send(words);
    unopened_.push_back(std::move(words));
  }

 private:
  // A connection with more requests without an answer takes no further ones.
  static constexpr size_t kMostUnanswered = 100'000;

  // The requests were given when the connection was not open yet: now they are sent.
  void opened() override {
    const TimeUs now = Loop::time_us();
    for (Sent& sent : sent_) sent.at = now;
    for (const auto& words : std::exchange(unopened_, {})) connection_->send(words);
  }
  void answered(Value value) override {
    heard_ = Loop::time_us();
    if (value.kind == Value::Kind::kPush) return channel_.pushed(number_, value);
    if (sent_.empty()) return broke("a reply without a request");
    has_answered_ = true;
    const Sent sent = std::move(sent_.front());
    sent_.pop_front();
    channel_.answered(number_, sent, value);
  }
  void broke(std::string why) override { channel_.broke(number_, why); }

  Channel& channel_;
  const uint64_t number_;
  std::deque<Sent> sent_;
  std::vector<std::vector<std::string>> unopened_;
  TimeUs heard_ = kLongAgoUs;
  bool has_answered_ = false;
  std::unique_ptr<Connection> connection_;
};

Channel::Channel(Loop& loop, Address address, OnRequest on_request, const TicketTimes& times)
    : loop_(loop),
      address_(with_pushes(std::move(address))),
      on_request_(std::move(on_request)),
      pulse_(times),
      timer_(loop, [this] { on_time(); }) {
  assert(!address_.redis);
}

Channel::~Channel() { assert(loop_.on_thread()); }

// --- the waits ---

void Channel::join(const std::string& key, const std::string& slot, size_t server,
                   const std::shared_ptr<ChannelUser>& user) {
  seats_[{key, slot}] = {server, user, user.get()};
  look(*user);
}

void Channel::leave(const std::string& key, const std::string& slot, const ChannelUser& user) {
  const auto seat = seats_.find({key, slot});
  if (seat != seats_.end() && seat->second.name == &user) seats_.erase(seat);
}

void Channel::look(const ChannelUser& user) {
  const DurationUs heartbeat_every = user.heartbeat_every();
  const DurationUs patience = user.patience();
  if (heartbeat_every >= heartbeat_every_ && patience >= patience_) return;
  heartbeat_every_ = std::min(heartbeat_every_, heartbeat_every);
  patience_ = std::min(patience_, patience);
  arm();
}

// Calls all waits. They may join and leave meanwhile.
void Channel::notify(void (ChannelUser::*news)(size_t server)) {
  std::vector<Seat> seats;
  seats.reserve(seats_.size());
  for (const auto& [name, seat] : seats_) seats.push_back(seat);
  for (const Seat& seat : seats) {
    if (const auto user = seat.user.lock()) (user.get()->*news)(seat.server);
  }
}

Channel::Tickets Channel::tickets() const {
  const bool outdated = tickets_ == Tickets::kNotKnown && is_due(ask_again_at_, Loop::time_us());
  return outdated ? Tickets::kUnknown : tickets_;
}

// --- requests ---

void Channel::send(const std::shared_ptr<ChannelUser>& user, const Asked& asked, const LockTerms& terms) {
  const TimeUs now = Loop::time_us();
  Sent sent{asked, user, now};
  if (newest() == nullptr && is_due(us_of(backoff_.until()), now)) open(now);
  Line* line = newest();
  if (line == nullptr || line->is_full()) {
    unsent_.push_back(std::move(sent));
    return arm();
  }
  pulse_.sent(now);
  if (std::holds_alternative<WaitRequest>(asked.request)) pulse_.record_heartbeat(now);
  line->send(std::move(sent), encode(asked.request, terms));
  arm();
}

// Without a connection this heartbeat is left out.
void Channel::send_heartbeat(TimeUs now) {
  pulse_.record_heartbeat(now);
  Line* line = newest();
  if (line == nullptr) return;
  const HeartbeatRequest request{pulse_.server_time()};
  pulse_.sent(now);
  std::vector<std::string> words = encode(request, kNoTerms);
  line->send({{0, request, now}, {}, now}, std::move(words));
}

// The server has something for a wait that is over: its UNLOCK may have been lost.
void Channel::unlock(const std::string& key, const std::string& owner) {
  LockTerms terms;
  terms.key = key;
  send(nullptr, {0, UnlockRequest{owner}, Loop::time_us()}, terms);
}

// --- connections ---

Channel::Line* Channel::find(uint64_t number) {
  const auto line = std::ranges::find_if(lines_, [&](const auto& l) { return l->number() == number; });
  return line == lines_.end() ? nullptr : line->get();
}

// One that has ended opens again after its pause, and not because the server is silent.
bool Channel::has_newest() const { return !lines_.empty() && lines_.back()->number() == pulse_.newest(); }

Channel::Line* Channel::newest() { return has_newest() ? lines_.back().get() : nullptr; }

// Does not call the waits: the timer does, if requests may have been lost.
void Channel::open(TimeUs now) {
  reopen_at_ = kNeverUs;
  tell_connection_ = pulse_.newest() != 0;
  if (lines_.size() >= kMostConnections) {
    const auto useless =
        std::ranges::find_if(lines_, [](const auto& line) { return !line->has_answered(); });
    lines_.erase(useless == lines_.end() ? lines_.begin() : useless);
  }
  lines_.push_back(std::make_unique<Line>(*this, pulse_.open(now)));
  send_heartbeat(now);
}

void Channel::answered(uint64_t number, const Sent& sent, const Value& value) {
  const TimeUs now = Loop::time_us();
  if (!pulse_.answered(number, sent.at, now)) return;
  backoff_.succeed();
  std::erase_if(lines_, [&](const auto& line) { return line->number() < pulse_.answering(); });
  const Answer answer = read_answer(sent.asked.request, value);
  if (std::holds_alternative<HeartbeatRequest>(sent.asked.request))
    return answered_heartbeat(sent.at, answer);
  const auto* refusal = std::get_if<Refusal>(&answer);
  const bool unknown = refusal != nullptr && refusal->code == Refusal::Code::kUnknown;
  if (unknown && std::holds_alternative<WaitRequest>(sent.asked.request)) record_no_tickets();
  if (const auto* wait = std::get_if<WaitAnswer>(&answer)) pulse_.record_time(sent.at, wait->now);
  if (on_request_) on_request_(true, now - sent.asked.at);
  if (const auto user = sent.user.lock()) user->answered(sent.asked, answer);
}

void Channel::record_no_tickets() {
  tickets_ = Tickets::kNotKnown;
  ask_again_at_ = Loop::time_us() + kAskedAgain;
}

// A user without the right to this command cannot wait by ticket either.
void Channel::answered_heartbeat(TimeUs sent, const Answer& answer) {
  const auto* heartbeat = std::get_if<HeartbeatAnswer>(&answer);
  if (heartbeat == nullptr) {
    const auto* refusal = std::get_if<Refusal>(&answer);
    if (refusal == nullptr) return;
    const bool known = refusal->code != Refusal::Code::kUnknown && refusal->error != ServerError::kNoRight;
    if (!known) record_no_tickets();
    return;
  }
  tickets_ = Tickets::kKnown;
  const bool restarted = pulse_.record_run(heartbeat->run_id);
  pulse_.record_time(sent, heartbeat->now);
  if (restarted) notify(&ChannelUser::restarted);
}

void Channel::pushed(uint64_t number, const Value& value) {
  const std::optional<KeyedPush> keyed = read_push(value);
  if (!keyed || !pulse_.accepts(number)) return;
  const auto* vote = std::get_if<VotePush>(&keyed->push);
  if (vote != nullptr) pulse_.record_time(vote->now);
  const std::string& owner = vote != nullptr ? vote->owner : std::get<InquirePush>(keyed->push).owner;
  const auto seat = seats_.find({keyed->key, std::string(slot_of(owner))});
  const auto user = seat == seats_.end() ? nullptr : seat->second.user.lock();
  if (user == nullptr) return unlock(keyed->key, owner);
  user->pushed(seat->second.server, keyed->push);
}

// The waits learn of a new connection before they could send anything over it, so they need no news of the
// end of this one but the loss of its requests.
void Channel::broke(uint64_t number, const std::string& why) {
  const auto at = std::ranges::find_if(lines_, [&](const auto& line) { return line->number() == number; });
  assert(at != lines_.end());
  const std::unique_ptr<Line> line = std::move(*at);
  lines_.erase(at);
  std::deque<Sent> sent = line->take_sent();
  if (number == pulse_.newest()) {
    const TimeUs now = Loop::time_us();
    if (!line->has_answered() || !sent.empty()) backoff_.fail(why, Loop::now());
    reopen_at_ = line->has_answered() ? now : us_of(backoff_.until());
    arm();
  }
  lose(sent, why);
}

// Reports the requests as lost. A wait may destroy this channel.
void Channel::lose(const std::deque<Sent>& requests, const std::string& why) {
  const Value lost = answer_of({Value::Kind::kLost, 0, why, {}});
  const std::weak_ptr<const bool> life = life_;
  for (const Sent& sent : requests) {
    const auto user = sent.user.lock();
    if (!user) continue;
    if (on_request_) on_request_(false, Loop::time_us() - sent.asked.at);
    user->answered(sent.asked, read_answer(sent.asked.request, lost));
    if (life.expired()) return;
  }
}

// --- time ---

void Channel::on_time() {
  const std::weak_ptr<const bool> life = life_;
  alarm_ = kNeverUs;
  const TimeUs now = Loop::time_us();
  heartbeat_every_ = patience_ = kForeverUs;
  for (const auto& [name, seat] : seats_) {
    const auto user = seat.user.lock();
    if (!user) continue;
    heartbeat_every_ = std::min(heartbeat_every_, user->heartbeat_every());
    patience_ = std::min(patience_, user->patience());
  }
  const bool needed = patience_ < kForeverUs;
  if (is_due(reopen_at_, now)) {
    reopen_at_ = kNeverUs;
    if (needed && newest() == nullptr) open(now);
  }
  if (needed && has_newest() && is_due(pulse_.open_at(patience_), now)) open(now);
  if (is_due(pulse_.heartbeat_at(heartbeat_every_), now)) {
    if (newest() == nullptr && is_due(us_of(backoff_.until()), now)) open(now);
    if (is_due(pulse_.heartbeat_at(heartbeat_every_), now)) send_heartbeat(now);
  }
  close_silent(now);
  if (life.expired()) return;
  arm();
  lose(std::exchange(unsent_, {}), backoff_.why());
  // cppcheck-suppress identicalConditionAfterEarlyExit  // a wait may destroy this object
  if (life.expired()) return;
  if (std::exchange(tell_connection_, false)) notify(&ChannelUser::reconnected);
}

// A wait opens a further connection long before that.
void Channel::close_silent(TimeUs now) {
  std::vector<uint64_t> silent;
  for (const auto& line : lines_) {
    if (is_due(line->silent_since() + us_of(kSilence), now)) silent.push_back(line->number());
  }
  const std::weak_ptr<const bool> life = life_;
  for (const uint64_t number : silent) {
    if (find(number) == nullptr) continue;
    if (address_.on_connection) address_.on_connection(false);
    broke(number, "no answer in " + std::to_string(kSilence.count) + " ms");
    if (life.expired()) return;
  }
}

TimeUs Channel::next_deadline() const {
  TimeUs next = std::min(reopen_at_, pulse_.heartbeat_at(heartbeat_every_));
  if (patience_ < kForeverUs && has_newest()) next = std::min(next, pulse_.open_at(patience_));
  for (const auto& line : lines_) next = std::min(next, line->silent_since() + us_of(kSilence));
  if (!unsent_.empty() || tell_connection_) next = kLongAgoUs;
  return next;
}

void Channel::arm() {
  const TimeUs at = next_deadline();
  if (at >= alarm_) return;
  alarm_ = at;
  timer_.set(at);
}

}  // namespace holdfast::client
