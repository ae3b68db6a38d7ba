// The world of clients and several engines: the next due event, the messages in transit, and the judge.
#include "redlock_world.h"

#include <algorithm>
#include <charconv>

namespace holdfast::simulation {

using client::Redlock;
using client::Reply;

namespace {

constexpr int kDriftPerMille = 50;
constexpr uint64_t kMostSteps = 200000;    // a run with more steps is stuck
constexpr int64_t kLossReportUs = 400000;  // after this time a client learns that a reply was lost
constexpr const char* kKey = "k";

Reply parsed(std::string_view text) {
  const auto number = [](std::string_view digits) {
    int64_t n = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
  };
  if (text.starts_with("*2")) return {Reply::Kind::kGrant, number(text.substr(text.rfind(':') + 1)), ""};
  if (text.starts_with("*-1")) return {Reply::Kind::kNull, 0, ""};
  if (text.starts_with(":")) return {Reply::Kind::kInteger, number(text.substr(1)), ""};
  return {Reply::Kind::kError, 0, std::string(text.substr(1, text.find('\r') - 1))};
}

std::string taken(Buffer& output) {
  std::string text(output.view());
  output.consume(output.size());
  return text;
}

}  // namespace

RedlockProfile::RedlockProfile(Dice& dice, Flaw flaw, Story story)
    : servers(flaw == Flaw::kNone ? dice.pick({size_t{1}, size_t{3}, size_t{3}, size_t{5}}) : 3),
      clients(static_cast<size_t>(dice.between(2, 4))),
      sessions(static_cast<int>(dice.between(1, 3))),
      ttl_ms(dice.between(10, 120)),
      server_timeout_ms(dice.between(5, 40)),
      slowest_us(dice.pick({int64_t{500}, int64_t{3000}, int64_t{20000}})),
      lost_one_in(dice.pick({uint64_t{0}, uint64_t{0}, uint64_t{20}, uint64_t{6}})),
      resent_one_in(dice.pick({uint64_t{0}, uint64_t{0}, uint64_t{4}})),
      overtaken_one_in(dice.pick({uint64_t{0}, uint64_t{0}, uint64_t{8}})),
      shared_one_in(dice.pick({uint64_t{0}, uint64_t{0}, uint64_t{3}})),
      crashes(static_cast<int>(dice.pick({0, 0, 1, 3}))),
      jumps(static_cast<int>(dice.pick({0, 0, 2, 4}))),
      recovers(dice.one_in(2)),
      clocks_agree(dice.one_in(3)) {
  if (flaw == Flaw::kCounterReset) crashes = 4;
  if (flaw == Flaw::kCounterReset) clocks_agree = false;
  if (flaw == Flaw::kClocksAstray) crashes = jumps = 0;
  good_in_time = jumps == 0 && (crashes == 0 || recovers);
  // Below the lead that a client may name, above it, and above the lead that only some clients may name.
  constexpr uint64_t kHourUs = 3'600'000'000;
  if (flaw == Flaw::kNone)
    ahead_us = dice.pick({uint64_t{0}, uint64_t{0}, kHourUs / 2, 2 * kHourUs, 1000 * kHourUs});
  if (story == Story::kChance) return;
  servers = dice.pick({size_t{3}, size_t{3}, size_t{5}});
  clients = static_cast<size_t>(dice.between(1, 4));
  sessions = 30;
  // The ttl is long compared with the turns of waiters: healing does not wait, and waiters may block it.
  ttl_ms = dice.between(500, 2000);
  slowest_us = dice.pick({int64_t{500}, int64_t{2000}});
  lost_one_in = resent_one_in = overtaken_one_in = 0;
  crashes = jumps = 0;
  good_in_time = true;
  // A counted lock needs all its servers: it survives only short absences.
  if (story == Story::kForgets && dice.one_in(3)) limit = 2;
  if (limit != 0) shared_one_in = 0;
}

RedlockWorld::RedlockWorld(uint64_t seed, Flaw flaw, RedlockTally& tally, Story story)
    : flaw_(flaw), story_(story), dice_(seed), profile_(dice_, flaw, story), tally_(tally) {
  // The slowest and the fastest clock differ by the drift that the algorithm allows for.
  const int64_t fastest = flaw == Flaw::kClocksAstray ? 2000000 : 1000000 + kDriftPerMille * 1000;
  servers_.resize(profile_.servers);
  for (Server& server : servers_) {
    server.clock = {dice_.between(1000, 900000), dice_.between(1000000, fastest)};
    const uint64_t ahead = &server == servers_.data() ? profile_.ahead_us : 0;
    start_engine(server, {ahead + (profile_.clocks_agree ? 0 : dice_.below(40)), {}, 0});
  }
  clients_.resize(profile_.clients);
  for (Client& client : clients_) {
    client.clock = {dice_.between(1000, 900000), dice_.between(1000000, fastest)};
    client.wall_skew_us = profile_.clocks_agree ? dice_.between(-5000, 5000) : -1;
    client.left = profile_.sessions;
    client.next_us = dice_.between(0, profile_.ttl_ms * 1000);
  }
  const int64_t span_us = profile_.ttl_ms * 1000 * profile_.sessions * 3;
  for (int i = 0; i < profile_.crashes + profile_.jumps; ++i) {
    Event event;
    event.kind = i < profile_.crashes ? Event::Kind::kCrash : Event::Kind::kJump;
    event.server = dice_.below(profile_.servers);
    schedule(dice_.between(0, span_us), std::move(event));
  }
}

void RedlockWorld::start_engine(Server& server, const IssuedTokens& before) {
  Config config;
  config.token_floor = before.largest;
  config.tokens_ahead = before.ahead;
  server.engine = std::make_unique<Engine>(std::move(config));
  server.links.clear();
  server.waits.clear();
}

Now RedlockWorld::server_now(const Server& server) const {
  return {TimeMs{server.clock.at(now_us_)}, 1000000 + now_us_};
}

// Clocks that disagree give useless hints: the servers' counters decide.
uint64_t RedlockWorld::wall_us(size_t client) const {
  const int64_t skew = clients_[client].wall_skew_us;
  return skew == -1 ? 1 : static_cast<uint64_t>(1000000 + now_us_ + skew);
}

void RedlockWorld::schedule(int64_t at_us, Event event) {
  events_.emplace(std::pair{std::max(at_us, now_us_), ++last_event_}, std::move(event));
}

void RedlockWorld::wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = "at " + std::to_string(now_us_) + " us: " + what;
}

std::string RedlockWorld::run() {
  uint64_t steps = 0;
  while (wrong_.empty() && step()) {
    if (++steps > kMostSteps) wrong("the run does not end");
  }
  tally_.steps += steps;
  for (const Session& session : sessions_) {
    if (wrong_.empty() && !session.lock->settled()) wrong("a lock is not settled, and nothing will come");
  }
  for (Server& server : servers_) {
    server.engine->check_invariants();
    if (wrong_.empty() && !is_free(server)) wrong("a hold was left behind, though no message was lost");
  }
  return wrong_;
}

// Where each message arrives exactly once, all holds must be released long before their expiry. Returns
// true in all other runs.
bool RedlockWorld::is_free(Server& server) {
  if (profile_.lost_one_in != 0 || profile_.resent_one_in != 0 || profile_.crashes != 0) return true;
  const ConnId probe = server.engine->open("127.0.0.1:1", "127.0.0.1:2", server_now(server));
  Effects fx;
  const std::string_view argv[] = {"LOCKS", "INFO", kKey};
  server.engine->apply(probe, argv, server_now(server), fx);
  return taken(server.engine->output(probe)) == "*-1\r\n";
}

// At the same moment an action of a client precedes outside events: its hold has ended by then.
bool RedlockWorld::step() {
  std::optional<int64_t> first;
  const auto is_first = [&](std::optional<int64_t> at) {
    if (!at || (first && *first <= *at)) return false;
    first = at;
    return true;
  };
  size_t client = clients_.size();
  Server* server = nullptr;
  for (size_t i = 0; i < clients_.size(); ++i) {
    if (is_first(next_of(i))) client = i;
  }
  for (Server& s : servers_) {
    if (!is_first(next_of(s))) continue;
    server = &s;
    client = clients_.size();
  }
  if (!events_.empty() && is_first(events_.begin()->first.first)) {
    auto event = events_.extract(events_.begin());
    now_us_ = std::max(now_us_, *first);
    play(event.mapped());
    return true;
  }
  if (!first) return false;
  now_us_ = std::max(now_us_, *first);
  if (client != clients_.size()) return step_client(client);
  return step_server(*server);
}

std::optional<int64_t> RedlockWorld::next_of(size_t index) const {
  const Client& client = clients_[index];
  if (!client.busy) return client.left > 0 ? std::optional(client.next_us) : std::nullopt;
  const Session& session = sessions_[client.session];
  const std::optional<TimeMs> deadline = session.lock->next_deadline();
  const int64_t due = deadline ? client.clock.when(deadline->count) : session.act_us;
  return std::max(now_us_, std::min(due, session.act_us));
}

// Only a waiter receives output that a server sends by itself.
std::optional<int64_t> RedlockWorld::next_of(const Server& server) const {
  if (server.waits.empty()) return std::nullopt;
  const std::optional<TimeMs> deadline = server.engine->next_deadline();
  if (!deadline) return std::nullopt;
  return std::max(now_us_, server.clock.when(deadline->count));
}

bool RedlockWorld::step_server(Server& server) {
  Effects fx;
  server.engine->tick(server_now(server), fx);
  collect(static_cast<size_t>(&server - servers_.data()), fx);
  return true;
}

bool RedlockWorld::step_client(size_t index) {
  Client& client = clients_[index];
  if (!client.busy) {
    begin(client, index);
    return true;
  }
  Session& session = sessions_[client.session];
  session.lock->on_time(client_now(index), wall_us(index));
  if (now_us_ >= session.act_us) use(session);
  carry(client.session);
  return true;
}

void RedlockWorld::begin(Client& client, size_t index) {
  client::RedlockConfig config;
  config.servers = profile_.servers;
  config.quorum = profile_.servers / 2 + 1;
  config.ttl = {profile_.ttl_ms};
  config.server_timeout = {profile_.server_timeout_ms};
  config.min_wait = {2};
  config.max_wait = {dice_.between(2, 40)};
  config.drift = kDriftPerMille / 1000.0;
  if (!dice_.one_in(4)) config.wait = DurationMs{dice_.one_in(3) ? 0 : dice_.between(1, 200)};
  if (profile_.limit != 0) config.breach = std::exchange(config.quorum, config.servers);
  Session session;
  session.client = index;
  session.keeps = story_ != Story::kChance && index == 0;
  session.shared = chance(profile_.shared_one_in);
  session.above_all = largest_;
  session.above_exclusive = largest_exclusive_;
  session.act_us = now_us_ + dice_.between(1000, 200000);  // cancels at this time, unless it holds by then
  std::vector<std::string> mode;
  if (session.shared) mode.emplace_back("SHARED");
  if (profile_.limit != 0) mode = {"LIMIT", std::to_string(profile_.limit)};
  session.lock =
      std::make_unique<Redlock>(config, kKey, mode, [this](uint64_t n) { return dice_.below(n); });
  session.lock->acquire(client_now(index), wall_us(index), dice_.one_in(2));
  --client.left;
  client.busy = true;
  client.session = sessions_.size();
  sessions_.push_back(std::move(session));
  carry(client.session);
}

// The holder's actions: it renews, releases or abandons the lock; a waiter cancels.
void RedlockWorld::use(Session& session) {
  if (session.keeps && session.lock->state() == Redlock::State::kHeld) return keep(session);
  session.act_us = now_us_ + dice_.between(100, profile_.ttl_ms * 600);
  const bool renews = session.lock->state() == Redlock::State::kHeld && !session.forgotten;
  if (renews && dice_.one_in(2)) {
    // A resent LOCK would set a shorter time than a longer renewal has set.
    const int64_t ttl = profile_.resent_one_in != 0 ? profile_.ttl_ms : dice_.between(5, 120);
    session.lock->renew(client_now(session.client), {ttl});
    session.renewing = true;
  } else if (!renews || !dice_.one_in(4)) {
    session.lock->release(client_now(session.client));
  }
}

void RedlockWorld::play(const Event& event) {
  Server& server = servers_[event.server];
  switch (event.kind) {
    case Event::Kind::kRequest:
      return request(event);
    case Event::Kind::kReply: {
      Session& session = sessions_[event.session];
      session.lock->on_reply(event.id, event.reply, client_now(session.client), wall_us(session.client));
      if (session.lock->state() == Redlock::State::kPausing && dice_.one_in(8)) {
        session.lock->on_freed(client_now(session.client), wall_us(session.client));
      }
      return carry(event.session);
    }
    case Event::Kind::kEnd: {
      const auto link = server.links.find({event.session, event.id});
      if (link == server.links.end()) return;
      if (!link->second.id) return void(server.links.erase(link));  // the request never arrived
      Effects fx;
      server.waits.erase(link->second.id.serial);
      server.engine->drop(link->second.id, server_now(server), fx);
      server.links.erase(link);
      return collect(event.server, fx);
    }
    case Event::Kind::kCrash:
      return crash(server);
    case Event::Kind::kJump:
      server.clock.start_ms += dice_.between(1, profile_.ttl_ms);
      return;
    case Event::Kind::kLeave:
      return leave(event.server);
    case Event::Kind::kReturn:
      return come_back(event.server);
  }
}

// A crash ends all connections. The counters survive, unless the flaw resets them.
void RedlockWorld::crash(Server& server) {
  const auto index = static_cast<size_t>(&server - servers_.data());
  const auto waits = server.waits;
  IssuedTokens before = server.engine->tokens().issued();
  before.largest += dice_.below(3);
  if (flaw_ == Flaw::kCounterReset && index == 0) before = {};
  const auto links = server.links;
  start_engine(server, before);
  const TimeMs now = server_now(server).mono;
  if (profile_.recovers) server.engine->availability().recovering_until = now + DurationMs{130};
  for (const auto& [serial, link] : waits)
    deliver(index, link, link.second, {Reply::Kind::kLost, 0, "gone"});
}

void RedlockWorld::request(const Event& event) {
  Server& server = servers_[event.server];
  const std::pair<size_t, uint64_t> name{event.session, event.waits ? event.id : 0};
  if (server.away) return deliver(event.server, name, event.id, {Reply::Kind::kLost, 0, "away"});
  Link& link = server.links[name];
  if (!link.id) link.id = server.engine->open("127.0.0.1:1", "127.0.0.1:2", server_now(server));
  const std::vector<std::string_view> argv(event.argv.begin(), event.argv.end());
  Effects fx;
  server.engine->apply(link.id, argv, server_now(server), fx);
  if (event.waits) server.waits[link.id.serial] = name;
  const std::string output = event.waits ? "" : taken(server.engine->output(link.id));
  if (!output.empty()) deliver(event.server, name, event.id, parsed(output));
  collect(event.server, fx);
}

// Delivers the output for waiters.
void RedlockWorld::collect(size_t index, Effects& fx) {
  Server& server = servers_[index];
  for (const ConnId id : fx.dirty) {
    const auto wait = server.waits.find(id.serial);
    if (wait == server.waits.end()) continue;
    const std::string output = taken(server.engine->output(id));
    if (output.empty()) continue;
    const auto name = wait->second;
    server.waits.erase(wait);
    deliver(index, name, name.second, parsed(output));
  }
}

void RedlockWorld::deliver(size_t index, std::pair<size_t, uint64_t> name, uint64_t id, Reply reply) {
  Event event;
  event.kind = Event::Kind::kReply;
  event.session = name.first;
  event.id = id;
  int64_t at = now_us_ + on_the_way();
  if (chance(profile_.lost_one_in)) {
    event.reply = {Reply::Kind::kLost, 0, "lost"};
    return schedule(now_us_ + kLossReportUs, std::move(event));
  }
  Link& link = servers_[index].links[name];
  at = link.received_us = std::max(at, link.received_us);
  event.reply = std::move(reply);
  schedule(at, std::move(event));
}

// Sends the requests of the session, and judges its new state.
void RedlockWorld::carry(size_t index) {
  Session& session = sessions_[index];
  session.lock->check_invariants();
  if (session.lock->state() == Redlock::State::kFencing) session.fenced = true;
  const bool healing = session.lock->state() == Redlock::State::kHeld;
  for (client::Send& s : session.lock->take_sends()) {
    if (healing && s.argv[0] == "LOCK") {
      if (flaw_ == Flaw::kNoHealing) continue;
      ++tally_.healed;
    }
    send(index, std::move(s));
  }
  for (const uint64_t id : session.lock->take_ends()) {
    Event event;
    event.kind = Event::Kind::kEnd;
    event.session = index;
    event.id = id;
    const auto server = std::find_if(servers_.begin(), servers_.end(), [&](const Server& s) {
      return s.links.contains({index, id});
    });
    if (server == servers_.end()) continue;  // the server crashed
    event.server = static_cast<size_t>(server - servers_.begin());
    const int64_t asked_us = server->links[{index, id}].asked_us;
    schedule(std::max(now_us_ + on_the_way(), asked_us), std::move(event));
  }
  judge(index);
}

void RedlockWorld::send(size_t index, client::Send&& send) {
  Event event;
  event.kind = Event::Kind::kRequest;
  event.server = send.server;
  event.session = index;
  event.id = send.id;
  event.waits = send.waits;
  event.argv = std::move(send.argv);
  Link& link = servers_[send.server].links[{index, send.waits ? send.id : 0}];
  if (chance(profile_.lost_one_in)) {
    event.kind = Event::Kind::kReply;
    event.reply = {Reply::Kind::kLost, 0, "lost"};
    return schedule(now_us_ + kLossReportUs, std::move(event));
  }
  link.asked_us = std::max(now_us_ + on_the_way(), link.asked_us);
  if (!send.waits && event.argv[0] == "LOCK" && chance(profile_.resent_one_in)) {
    schedule(link.asked_us + dice_.between(0, 2 * profile_.ttl_ms * 1000), event);  // overtaken
  }
  // A request on a broken connection may arrive after requests on the next connection.
  const bool overtaken = !send.waits && event.argv[0] == "LOCK" && chance(profile_.overtaken_one_in);
  const int64_t more_us = overtaken ? dice_.between(0, 2 * profile_.ttl_ms * 1000) : 0;
  schedule(link.asked_us + more_us, std::move(event));
}

void RedlockWorld::judge(size_t index) {
  Session& session = sessions_[index];
  const Redlock::State state = session.lock->state();
  if (state == Redlock::State::kHeld && !session.holds) {
    session.holds = true;
    session.act_us = now_us_ + dice_.between(100, profile_.ttl_ms * 700);
    ++tally_.acquired;
    if (session.fenced) ++tally_.fenced;
    judge_token(session);
    if (session.keeps && story_ != Story::kChance && !std::exchange(restarts_begun_, true)) {
      returned_us_ = now_us_;
      schedule_leave(0, dice_.between(0, profile_.ttl_ms * 1000));
    }
    tokens_[session.lock->token()] |= !session.shared && profile_.limit == 0;
    largest_ = std::max(largest_, session.lock->token());
    if (!session.shared && profile_.limit == 0)
      largest_exclusive_ = std::max(largest_exclusive_, session.lock->token());
  }
  judge_renewal(session);
  if (profile_.good_in_time) judge_exclusion();
  if (state != Redlock::State::kOver || session.counted) return;
  session.counted = true;
  if (!session.holds) ++tally_.failed;
  const bool lost = session.holds && session.lock->result().outcome == Outcome::kExpired;
  if (lost) ++tally_.lost;
  if (session.keeps && !restarts_over_ && session.holds) wrong("a hold ended though it was remembered");
  Client& client = clients_[session.client];
  client.busy = false;
  client.next_us = now_us_ + dice_.between(0, profile_.ttl_ms * 500);
}

// Shared locks have several holders: the order of their tokens is unspecified.
void RedlockWorld::judge_token(const Session& session) {
  const uint64_t token = session.lock->token();
  const uint64_t above =
      session.shared || profile_.limit != 0 ? session.above_exclusive : session.above_all;
  if (token <= above) {
    wrong("token " + std::to_string(token) + " is not above " + std::to_string(above) +
          ", which was given before it began");
  }
  const auto same = tokens_.find(token);
  const bool alone = !session.shared && profile_.limit == 0;
  if (same != tokens_.end() && (alone || same->second)) {
    wrong("token " + std::to_string(token) + " is given twice");
  }
}

// A client that learns that too many servers lack the hold ends it, as HoldCore does.
void RedlockWorld::judge_renewal(Session& session) {
  if (!session.lock->renewal()) return;
  const Outcome outcome = session.lock->renewal()->outcome;
  if (outcome == Outcome::kExpired && !std::exchange(session.forgotten, true)) session.act_us = now_us_;
  if (!std::exchange(session.renewing, false)) return;
  if (outcome == Outcome::kOk) ++tally_.renewed;
  if (!session.keeps) return;
  const TimeMs now = client_now(session.client);
  const int64_t left_ms = (session.lock->valid_until() - now).count;
  const int64_t pause_ms = outcome == Outcome::kOk ? std::min(profile_.ttl_ms / 3, left_ms / 2)
                                                   : std::min(profile_.ttl_ms / 10, left_ms / 4);
  session.act_us = now_us_ + std::max<int64_t>(pause_ms, 1) * 1000;
}

void RedlockWorld::judge_exclusion() {
  size_t holders = 0;
  bool exclusive = profile_.limit != 0;
  for (const Client& client : clients_) {
    if (!client.busy || sessions_[client.session].lock->state() != Redlock::State::kHeld) continue;
    ++holders;
    if (!sessions_[client.session].shared) exclusive = true;
  }
  const size_t most = std::max<size_t>(profile_.limit, 1);
  if (exclusive && holders > most) wrong(most == 1 ? "two hold the lock" : "too many hold the lock");
}

}  // namespace holdfast::simulation
