#include "ticket_world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace holdfast::simulation::ticket {

namespace {

constexpr int64_t kMostDriftPpm = 4000;
// After LOCKS BREAK: when no client has a vote from before any more, and when a holder must know of it. It
// renews after a third of the TTL.
constexpr int64_t kStaleUs = 50 * kMs;

int64_t known_us(const Case& plan) { return plan.ttl_ms * kMs / 3 + kStaleUs; }

Clock clock_of(QuickDice& dice) {
  return {dice.between(1'000'000'000, 100'000'000'000),
          1'000'000 + dice.between(-kMostDriftPpm, kMostDriftPpm)};
}

std::string seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", s);
  return text;
}

}  // namespace

std::string Figures::complaint(const Case& c) const {
  if (!faults.empty()) return faults.front();
  if (rate < c.least_rate) return "the rate is " + seconds(rate) + " of that without faults";
  if (!c.fair) return "";
  if (longest_wait_s > std::max(3.0, 3 * fair_share_s))
    return "a client waits for " + seconds(longest_wait_s) + " s";
  if (least_to_most < 1.0 / 3)
    return "the least served client gets " + seconds(least_to_most) + " of the most";
  return "";
}

World::World(Case plan, uint64_t seed, std::function<void(const std::string&)> tell)
    : plan_(std::move(plan)),
      dice_(seed),
      seed_(seed),
      network_(events_,
               {[this](size_t client, size_t server, Way way) {
                  if (events_.now_us() < begin_us() || !plan_.cut) return false;
                  return plan_.cut(*this, clients_[client]->plan(), server, way);
                },
                [this](size_t client, size_t server) {
                  const bool begun = plan_.always_far || events_.now_us() >= begin_us();
                  const bool more = begun && plan_.more_delay_us;
                  return plan_.delay_us +
                         (more ? plan_.more_delay_us(*this, clients_[client]->plan(), server) : 0);
                },
                plan_.loss},
               {[this](const ConnectionPtr& c) { clients_[c->client]->opened(c); },
                [this](const ConnectionPtr& c) { clients_[c->client]->refused(c); },
                [this](size_t server) { return servers_[server]->listens(); },
                [this](const ConnectionPtr& c, Connection::Packet&& packet) {
                  servers_[c->server]->receive(c, std::move(packet));
                },
                [this](const ConnectionPtr& c, Connection::Packet&& packet) {
                  clients_[c->client]->receive(c, std::move(packet));
                }},
               seed * 7919 + 1),
      around_{events_,
              network_,
              [this] { return dice_.between(0, 2000); },
              [this] { return plan_.hold ? plan_.hold(*this) : dice_.between(0, plan_.hold_us); },
              [this](Client& c) { entered(c); },
              [this](Client& c) { left(c); },
              nullptr} {
  if (tell) {
    around_.tell = [this, tell](const std::string& line) {
      char head[32];
      std::snprintf(head, sizeof head, "%10.3f ms  ", static_cast<double>(events_.now_us()) / 1000);
      tell(head + line);
    };
  }
  for (size_t n = 0; n < plan_.servers; ++n) make_server(n);
  for (size_t n = 0; n < plan_.clients; ++n) spawn(n % plan_.groups);
  for (size_t n = 0; n < plan_.extra_clients; ++n) spawn(kExtra + n);
  if (plan_.faults) events_.at(begin_us(), [this] { plan_.faults(*this); });
}

void World::make_server(size_t /*n*/) {
  servers_.push_back(std::make_unique<Server>(
      events_, clock_of(dice_), dice_.between(-plan_.clocks_us, plan_.clocks_us),
      [this](const ConnectionPtr& c, std::string bytes) {
        network_.send(c, Way::kBack, {{}, std::move(bytes), false});
      },
      [this](const ConnectionPtr& c) { network_.close(c, Way::kBack); }));
}

Client& World::spawn(size_t group) {
  const bool reads = plan_.locks == Locks::kShared && clients_.size() / plan_.groups % 2 == 0;
  return spawn(group, reads ? client::LockMode::kShared : client::LockMode::kExclusive);
}

Client& World::spawn(size_t group, client::LockMode mode) {
  ClientPlan plan;
  plan.index = clients_.size();
  plan.group = group;
  plan.clock = clock_of(dice_);
  plan.wall_skew_us = dice_.between(-plan_.clocks_us, plan_.clocks_us);
  plan.config.servers = plan_.servers;
  plan.config.quorum = plan_.locks == Locks::kCounted ? plan_.servers : plan_.servers / 2 + 1;
  plan.config.ttl = {plan_.ttl_ms};
  plan.config.times = plan_.times;
  plan.config.drift = plan_.drift;
  plan.config.terms.key = "k";
  plan.config.terms.mode = mode;
  if (plan_.locks == Locks::kCounted) {
    plan.config.terms.mode = client::LockMode::kCounted;
    plan.config.terms.limit = 2;
    plan.config.breach = plan_.servers / 2 + 1;
  }
  clients_.push_back(std::make_unique<Client>(plan, around_));
  born_us_.push_back(events_.now_us());
  Client& c = *clients_.back();
  events_.after(dice_.between(0, 10'000), [&c] { c.begin(); });
  return c;
}

// --- faults ---

bool World::misses(size_t group, int64_t period, size_t server) {
  QuickDice dice(seed_ * 1'000'003 + group * 8191 + static_cast<uint64_t>(period) * 131);
  std::vector<size_t> all(plan_.servers);
  for (size_t n = 0; n < all.size(); ++n) all[n] = n;
  for (size_t n = 0; n < minority(); ++n) {
    std::swap(all[n], all[n + dice.below(all.size() - n)]);
    if (all[n] == server) return true;
  }
  return false;
}

void World::restart(size_t server, int64_t down_us, bool with_data) {
  servers_[server]->stop(plan_.proxied);
  const int64_t recovery_ms = plan_.recovers ? plan_.ttl_ms * 102 / 100 : 0;
  events_.after(down_us, [=, this] { servers_[server]->start(with_data, recovery_ms); });
}

void World::replace_one(Victim victim) {
  std::vector<Client*> all;
  std::vector<Client*> fitting;
  for (const auto& c : clients_) {
    if (c->gone() || c->plan().group >= kExtra) continue;
    all.push_back(c.get());
    const bool fits = victim == Victim::kHolder ? c->holds() : victim == Victim::kVoter && c->has_votes();
    if (fits) fitting.push_back(c.get());
  }
  Client* gone = fitting.empty() ? dice_.pick(all) : dice_.pick(fitting);
  gone->vanish();
  spawn(gone->plan().group, gone->mode());
}

void World::replace(size_t group, bool silent) {
  for (size_t n = 0; n < clients_.size(); ++n) {
    if (clients_[n]->plan().group != group || !counts(*clients_[n])) continue;
    if (silent) {
      silent_.insert(n);
    } else {
      clients_[n]->vanish();
    }
    spawn(group, clients_[n]->mode());
    return;
  }
}

void World::silence(size_t count) {
  for (size_t n = 0; n < count; ++n) silent_.insert(n);
}

void World::end_some(size_t count) {
  for (size_t n = 0; n < clients_.size() && count > 0; ++n) {
    if (clients_[n]->gone()) continue;
    clients_[n]->vanish();
    --count;
  }
}

void World::break_lock() {
  broken_us_ = events_.now_us();
  for (const Client* c : inside_) broken_.emplace(c, broken_us_);
  for (const auto& s : servers_) s->break_lock("k");
}

// --- the judge ---

bool World::excludes(const Client& a, const Client& b) const {
  return a.mode() != client::LockMode::kShared || b.mode() != client::LockMode::kShared;
}

void World::fault(const std::string& what) {
  faults_.push_back("at " + std::to_string(events_.now_us()) + " us: " + what);
  if (around_.tell) around_.tell("FAULT " + what);
}

void World::entered(Client& c) {
  const int64_t now_us = events_.now_us();
  if (around_.tell)
    around_.tell("c" + std::to_string(c.plan().index) + " ENTERS " + std::to_string(c.token()));
  size_t counted = 1;
  const bool stale = now_us < broken_us_ + kStaleUs;
  if (stale) broken_[&c] = 0;
  for (const Client* other : inside_) {
    if (other->valid_until_us() <= now_us || stale || broken_.contains(other)) continue;
    if (c.mode() == client::LockMode::kCounted) {
      ++counted;
    } else if (excludes(c, *other)) {
      fault("clients " + std::to_string(other->plan().index) + " and " + std::to_string(c.plan().index) +
            " hold");
    }
  }
  if (counted > 2) fault("too many hold");
  const bool exclusive = c.mode() == client::LockMode::kExclusive;
  const uint64_t above = exclusive ? largest_token_ : largest_exclusive_;
  if (c.mode() != client::LockMode::kCounted && c.token() <= above && !stale)
    fault("token " + std::to_string(c.token()) + " is not above " + std::to_string(above));
  largest_token_ = std::max(largest_token_, c.token());
  if (exclusive) largest_exclusive_ = std::max(largest_exclusive_, c.token());
  inside_.push_back(&c);
  entries_us_.push_back(now_us);
  if (now_us < begin_us() + plan_.ttl_ms * 1000) return;
  ++c.record().grants;
  const int64_t wait_us = now_us - c.record().asked_us;
  c.record().longest_wait_us = std::max(c.record().longest_wait_us, wait_us);
}

void World::left(Client& c) {
  std::erase(inside_, &c);
  const auto broken = broken_.find(&c);
  if (broken != broken_.end()) {
    const int64_t at_us = broken->second;
    broken_.erase(broken);
    const bool must_know = at_us > 0 && events_.now_us() > at_us + known_us(plan_);
    if (must_know && !c.gone() && !c.knows_loss())
      fault("client " + std::to_string(c.plan().index) + " does not know that its lock was broken");
  }
  if (around_.tell) around_.tell("c" + std::to_string(c.plan().index) + " LEAVES");
}

// Whether the client must be served like the others.
bool World::counts(const Client& c) const {
  return !c.gone() && c.plan().group < kExtra && !is_silent(c.plan());
}

Figures World::run() {
  constexpr int64_t kStartUs = 1'000'000;
  events_.run_until(begin_us());
  const auto before = static_cast<uint64_t>(
      std::count_if(entries_us_.begin(), entries_us_.end(), [](int64_t us) { return us > kStartUs; }));
  entries_us_.clear();
  events_.run_until(end_us());
  for (const auto& s : servers_) s->check_invariants();
  return judge(before, static_cast<double>(begin_us() - kStartUs) / 1e6);
}

Figures World::judge(uint64_t before, double before_s) {
  Figures o;
  const int64_t from_us = begin_us() + plan_.ttl_ms * 1000;
  int64_t last_us = from_us;
  int64_t gap_us = 0;
  for (const int64_t us : entries_us_) {
    if (us < from_us) continue;
    ++o.grants;
    gap_us = std::max(gap_us, us - last_us);
    last_us = us;
  }
  o.before = static_cast<double>(before) / before_s;
  const int64_t span_us = std::max<int64_t>(end_us() - from_us - plan_.excused_us, 1'000'000);
  o.after = static_cast<double>(o.grants) * 1e6 / static_cast<double>(span_us);
  o.rate = o.before > 0 ? o.after / o.before : 0;
  o.longest_gap_s = static_cast<double>(std::max(gap_us, end_us() - last_us)) / 1e6;
  size_t contenders = 0;
  int64_t wait_us = 0;
  std::vector<std::pair<double, double>> shares(3, {1e18, 0});  // by mode
  for (size_t n = 0; n < clients_.size(); ++n) {
    const Client& c = *clients_[n];
    o.lost += clients_[n]->record().lost;
    if (c.plan().group >= kExtra || is_silent(c.plan())) continue;
    wait_us = std::max(wait_us, clients_[n]->record().longest_wait_us);
    if (!counts(c)) continue;
    ++contenders;
    if (clients_[n]->record().asked_us >= 0)
      wait_us = std::max(wait_us, end_us() - std::max(clients_[n]->record().asked_us, from_us));
    const int64_t life_us = end_us() - std::max(born_us_[n], from_us);
    if (life_us < 4'000'000) continue;
    const double share = static_cast<double>(clients_[n]->record().grants) / static_cast<double>(life_us);
    auto& [least, most] = shares[static_cast<size_t>(c.mode())];
    least = std::min(least, share);
    most = std::max(most, share);
  }
  o.longest_wait_s = static_cast<double>(wait_us) / 1e6;
  o.fair_share_s = o.before > 0 ? static_cast<double>(contenders) / o.before : 0;
  o.least_to_most = 1;
  for (const auto& [least, most] : shares) {
    if (least < 1e18) o.least_to_most = std::min(o.least_to_most, most > 0 ? least / most : 0);
  }
  o.packets =
      static_cast<double>(network_.packets()) / std::max<double>(1, static_cast<double>(before + o.grants));
  o.faults = faults_;
  return o;
}

}  // namespace holdfast::simulation::ticket
