// The world of clients and several servers: the next due event, and the users of the locks.
#include "redlock_world.h"

#include <algorithm>

namespace holdfast::simulation::redlock {

using client::Redlock;

namespace {

constexpr int kDriftPerMille = 50;
constexpr uint64_t kMostSteps = 400000;  // a run with more steps is stuck

// The first clocks are the slowest and the fastest.
Clock clock_of(QuickDice& dice, const Parameters& world) {
  const int64_t fastest = world.flaw == Flaw::kClocksAstray ? 2000000 : 1000000 + kDriftPerMille * 1000;
  const int64_t start_ms = dice.between(1000, 900000);
  const int64_t rate = dice.between(1000000, fastest);
  return {start_ms, world.clocks_differ || world.flaw == Flaw::kClocksAstray ? rate : 1000000};
}

}  // namespace

World::World(const Plan& plan, Tally& tally, Teller teller)
    : world_(plan.world), steps_(plan.steps), tally_(tally), teller_(std::move(teller)) {
  QuickDice dice(world_.seed ^ 0xc10c);
  servers_.resize(world_.servers);
  for (Server& server : servers_) {
    server.clock = clock_of(dice, world_);
    const uint64_t ahead = &server == servers_.data() ? world_.ahead_us : 0;
    const uint64_t counter = dice.below(40);
    const uint64_t floor = ahead == 0 ? 0 : static_cast<uint64_t>(kWallStartUs) + ahead;
    server.start(0, {floor + (world_.clocks_agree ? 0 : counter), {}, 0});
  }
  issued_.resize(world_.keys);
  clients_.resize(world_.clients);
  cut_us_.assign(world_.clients, std::vector<int64_t>(world_.servers, 0));
  for (Client& client : clients_) {
    client.clock = clock_of(dice, world_);
    const int64_t skew = dice.between(-5000, 5000);
    client.wall_skew_us = world_.clocks_agree ? skew : -1;
  }
  plan_faults();
}

void World::plan_faults() {
  for (const Step& step : steps_) {
    last_us_ = std::max(last_us_, step.end_us());
    if (step.kind == Step::Kind::kSession) {
      clients_[step.client].steps.push_back(&step);
    } else {
      schedule_step(step.at_us, Event::Kind::kStep, step);
    }
  }
  for (Client& client : clients_) {
    std::stable_sort(client.steps.begin(), client.steps.end(),
                     [](const Step* a, const Step* b) { return a->at_us < b->at_us; });
  }
  Event drain;
  drain.kind = Event::Kind::kDrain;
  schedule(last_us_, drain);
}

// Clocks that disagree give useless hints: the servers' counters decide.
uint64_t World::wall_us(size_t client) const {
  const int64_t skew = clients_[client].wall_skew_us;
  return skew == -1 ? 1 : static_cast<uint64_t>(kWallStartUs + now_us_ + skew);
}

void World::schedule(int64_t at_us, Event event) {
  events_.emplace(std::pair{std::max(at_us, now_us_), ++last_event_}, std::move(event));
}

void World::schedule_step(int64_t at_us, Event::Kind kind, const Step& step) {
  Event event;
  event.kind = kind;
  event.step = &step;
  event.server = step.server;
  schedule(at_us, std::move(event));
}

void World::wrong(const std::string& what) {
  if (!wrong_.empty()) return;
  wrong_ = "at " + std::to_string(now_us_) + " us: " + what;
  tell([&] { return "wrong: " + what; });
}

void World::tell_line(const std::string& what) {
  const std::string us = std::to_string(now_us_);
  teller_(std::string(us.size() < 9 ? 9 - us.size() : 0, ' ') + us + " us  " + what + "\n");
}

std::string World::name_of(const Session& session) const {
  return "client " + std::to_string(session.step->client) + " (" + session.lock->owner().substr(0, 4) + ")";
}

std::string World::run() {
  uint64_t steps = 0;
  while (wrong_.empty() && step()) {
    judge_health();
    if (++steps > kMostSteps) wrong("the run does not end");
  }
  tally_.steps += steps;
  if (wrong_.empty()) finish();
  return wrong_;
}

void World::finish() {
  for (const Session& session : sessions_) {
    if (!session.lock->settled()) wrong(name_of(session) + " is not settled, and nothing will come");
  }
  for (size_t server = 0; server < servers_.size(); ++server) {
    servers_[server].engine().check_invariants();
    if (!is_free(server)) wrong("a hold was left behind, though no message was lost");
  }
}

// At the same moment an action of a client precedes outside events: its hold has ended by then.
bool World::step() {
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
  if (client != clients_.size()) {
    step_client(client);
  } else {
    step_server(*server);
  }
  return true;
}

std::optional<int64_t> World::next_of(size_t index) const {
  const Client& client = clients_[index];
  if (!client.busy) {
    if (client.steps.empty()) return std::nullopt;
    return std::max({client.next_us, client.steps.front()->at_us, client.stalled_us});
  }
  const Session& session = sessions_[client.session];
  const std::optional<TimeMs> deadline = session.lock->next_deadline();
  int64_t next = session.act_us;
  if (deadline) next = std::min(next, client.clock.when(deadline->count));
  return next == INT64_MAX ? std::nullopt : std::optional(std::max(next, client.stalled_us));
}

// Only a waiter receives output that a server sends by itself.
std::optional<int64_t> World::next_of(const Server& server) const {
  if (!server.up() || (server.waits.empty())) return std::nullopt;
  const std::optional<TimeMs> deadline = server.engine().next_deadline();
  if (!deadline) return std::nullopt;
  return std::max(now_us_, server.clock.when(deadline->count));
}

void World::step_server(Server& server) {
  Effects fx;
  server.engine().tick(server.now(now_us_), fx);
  server.collect(now_us_);
  collect(static_cast<size_t>(&server - servers_.data()), fx);
}

void World::step_client(size_t index) {
  Client& client = clients_[index];
  if (!client.busy) return begin(client, index);
  Session& session = sessions_[client.session];
  session.lock->on_time(client_now(index), wall_us(index));
  if (now_us_ >= session.act_us) use(session);
  carry(client.session);
}

void World::begin(Client& client, size_t index) {
  Session& session = sessions_.emplace_back();
  session.step = client.steps.front();
  client.steps.pop_front();
  session.dice = QuickDice(world_.seed * 1000003 + session.step->id);
  client::RedlockConfig config;
  config.servers = world_.servers;
  config.quorum = world_.servers / 2 + 1;
  config.ttl = {world_.ttl_ms};
  config.server_timeout = {world_.server_timeout_ms};
  config.min_wait = {2};
  config.max_wait = {session.step->max_wait_ms};
  config.drift = kDriftPerMille / 1000.0;
  if (session.step->wait_ms >= 0) config.wait = DurationMs{session.step->wait_ms};
  std::vector<std::string> mode;
  if (session.mode() == Mode::kShared) mode = {"SHARED"};
  if (session.mode() == Mode::kCounted) {
    mode = {"LIMIT", std::to_string(world_.limit)};
    config.breach = std::exchange(config.quorum, config.servers);
  }
  session.above_all = issued_[session.key()].largest;
  session.above_exclusive = issued_[session.key()].largest_exclusive;
  session.proofs.resize(world_.servers);
  session.confirmed_us = now_us_;
  session.act_us = session.step->cancel_us == 0 ? INT64_MAX : now_us_ + session.step->cancel_us;
  session.lock = std::make_unique<Redlock>(config, kKeys[session.key()], mode,
                                           [&session](uint64_t n) { return session.dice.below(n); });
  session.lock->acquire(client_now(index), wall_us(index));
  client.busy = true;
  client.session = sessions_.size() - 1;
  carry(client.session);
}

// The user's actions: a holder renews, releases or abandons the lock; a waiter cancels.
void World::use(Session& session) {
  session.act_us = now_us_ + session.dice.between(100, world_.ttl_ms * 600);
  if (session.lock->state() != Redlock::State::kHeld || session.forgotten) return release(session);
  if (session.step->renews) return keep(session);
  if (session.dice.one_in(2)) {
    // A resent LOCK would set a shorter time than a longer renewal has set.
    renew(session, world_.resent_one_in != 0 ? world_.ttl_ms : session.dice.between(5, world_.ttl_ms * 2));
  } else if (!session.dice.one_in(4)) {
    release(session);
  }
}

// Renews as HoldCore does.
void World::keep(Session& session) {
  if (now_us_ >= session.end_us) return release(session);
  session.act_us = INT64_MAX;
  renew(session, world_.ttl_ms);
}

void World::renew(Session& session, int64_t ttl_ms) {
  tell([&] { return name_of(session) + " renews"; });
  session.renewing = true;
  session.round_us = now_us_;
  session.lock->renew(client_now(session.step->client), {ttl_ms});
}

void World::release(Session& session) {
  if (session.lock->state() == Redlock::State::kReleasing) return;
  tell([&] { return name_of(session) + (session.holds ? " releases" : " cancels"); });
  session.releases = true;
  session.lock->release(client_now(session.step->client));
}

void World::play(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kRequest:
      return request(event);
    case Event::Kind::kReply:
      return reply(event);
    case Event::Kind::kEnd:
      return close(event);
    case Event::Kind::kStep:
      return begin_step(*event.step);
    case Event::Kind::kReturn:
      return come_back(*event.step);
    case Event::Kind::kLoaded:
      return finish_loading(*event.step);
    case Event::Kind::kDrain:
      return drain();
  }
}

// After the last step all holders release. Then the waits without a limit must end with the lock, one after
// the other. The rest is cancelled.
void World::drain() {
  const bool steps_left = std::any_of(clients_.begin(), clients_.end(),
                                      [](const Client& c) { return c.busy || !c.steps.empty(); });
  if (!steps_left) return;
  const int64_t patience_us = world_.calm() ? 60 * ttl_us() + 4000000 : 4 * ttl_us();
  for (const Client& client : clients_) {
    if (!client.busy || now_us_ < last_us_ + patience_us) continue;
    Session& session = sessions_[client.session];
    if (world_.calm()) return wrong(name_of(session) + " waits for ever");
    release(session);
    carry(client.session);
  }
  Event again;
  again.kind = Event::Kind::kDrain;
  schedule(now_us_ + patience_us, again);
}

}  // namespace holdfast::simulation::redlock
