#include "ticket_cases.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace holdfast::simulation::ticket {

namespace {

constexpr size_t kEach = 100;  // in place of groups: above their numbers

// The servers from the group's own one on: as many as leave a majority.
bool is_missing(const World& w, size_t group, size_t server) {
  for (size_t n = 0; n < w.minority(); ++n) {
    if ((group + n) % w.plan().servers == server) return true;
  }
  return false;
}

// Of an extra client, whose group is its number: all servers but a minority.
bool is_beyond(const World& w, size_t group, size_t server) {
  return !is_missing(w, group - kExtra, server);
}

bool cut_each(World& w, const ClientPlan& c, size_t server, Way /*way*/) {
  return c.group < kExtra && is_missing(w, c.group, server);
}

// Who misses which servers changes at a time of its own for each group, or each client.
auto cut_flapping(int64_t period_us, bool each_client = false) {
  return [=](World& w, const ClientPlan& c, size_t server, Way /*way*/) {
    if (c.group >= kExtra) return false;
    const size_t who = each_client ? kEach + c.index : c.group;
    const auto phase = static_cast<int64_t>(who) * period_us * 37 / 100;
    return w.misses(who, (w.events().now_us() + phase) / period_us, server);
  };
}

// Calls `fault(n)` for n = 0, 1, ... each time after this pause, until the end.
void repeat(World& w, int64_t pause_us, const std::function<void(size_t)>& fault, size_t n = 0) {
  if (w.events().now_us() >= w.end_us()) return;
  fault(n);
  w.events().after(pause_us, [&w, pause_us, fault, n] { repeat(w, pause_us, fault, n + 1); });
}

auto restarting(int64_t pause_us, int64_t down_us, bool with_data) {
  return [=](World& w) {
    repeat(w, pause_us,
           [&w, down_us, with_data](size_t n) { w.restart(n % w.plan().servers, down_us, with_data); });
  };
}

auto freezing(int64_t pause_us, int64_t for_us) {
  return [=](World& w) {
    repeat(w, pause_us,
           [&w, for_us](size_t n) { w.server(n % w.plan().servers).freeze(w.events().now_us() + for_us); });
  };
}

void vanishing(World& w) {
  repeat(w, 2'000 * kMs,
         [&w](size_t n) { w.replace_one(n % 2 == 0 ? World::Victim::kHolder : World::Victim::kVoter); });
}

Case named(const char* name) {
  Case c;
  c.name = name;
  return c;
}

void add_cuts(std::vector<Case>& all) {
  Case c = named("each group misses another server");
  c.cut = cut_each;
  all.push_back(c);

  c = named("two groups miss one server");
  c.cut = [](World&, const ClientPlan& p, size_t server, Way) { return p.group < 2 && server == 0; };
  all.push_back(c);

  c = named("one group misses a server");
  c.cut = [](World&, const ClientPlan& p, size_t server, Way) { return p.group == 0 && server == 0; };
  all.push_back(c);

  c = named("requests of each group do not reach another server");
  c.cut = [](World& w, const ClientPlan& p, size_t server, Way way) {
    return way == Way::kThere && is_missing(w, p.group, server);
  };
  all.push_back(c);

  c = named("answers to each group do not come from another server");
  c.cut = [](World& w, const ClientPlan& p, size_t server, Way way) {
    return way == Way::kBack && is_missing(w, p.group, server);
  };
  all.push_back(c);

  c = named("each group is 100 ms from another server");
  c.more_delay_us = [](World& w, const ClientPlan& p, size_t server) -> int64_t {
    return server == p.group % w.plan().servers ? 100'000 : 0;
  };
  all.push_back(c);
}

void add_flaps(std::vector<Case>& all) {
  for (const auto& [name, period_us] : {std::pair{"cuts change every 3 s", 3'000 * kMs},
                                        {"cuts change every 0.7 s", 700 * kMs},
                                        {"cuts change every 0.3 s", 300 * kMs},
                                        {"cuts change every 0.15 s", 150 * kMs}}) {
    Case c = named(name);
    c.cut = cut_flapping(period_us);
    if (period_us < 200 * kMs) c.least_rate = c.least_rate_of_5 = 1.0 / 3;
    // A client that misses two of five servers needs the vote of each other one. Measured: 0.44 to 0.65.
    if (period_us == 300 * kMs) c.least_rate_of_5 = 0.4;
    all.push_back(c);
  }
  Case c = named("cuts of each client change every 0.9 s");
  c.cut = cut_flapping(900 * kMs, true);
  all.push_back(c);
}

void add_hermits(std::vector<Case>& all) {
  Case c = named("each, and three clients that reach a minority");
  c.extra_clients = 3;
  c.cut = [](World& w, const ClientPlan& p, size_t server, Way way) {
    return p.group < kExtra ? cut_each(w, p, server, way) : is_beyond(w, p.group, server);
  };
  all.push_back(c);

  c = named("four clients that flap between a minority and all");
  c.extra_clients = 4;
  c.cut = [](World& w, const ClientPlan& p, size_t server, Way) {
    if (p.group < kExtra) return false;
    const auto phase = static_cast<int64_t>(p.group - kExtra) * 105 * kMs;
    return (w.events().now_us() + phase) / (350 * kMs) % 2 == 0 && is_beyond(w, p.group, server);
  };
  all.push_back(c);

  c = named("four clients that get no answers");
  c.extra_clients = 4;
  c.cut = [](World&, const ClientPlan& p, size_t, Way way) {
    return p.group >= kExtra && way == Way::kBack;
  };
  all.push_back(c);
}

void add_ends(std::vector<Case>& all) {
  Case c = named("half of the clients vanish");
  c.faults = [](World& w) { w.end_some(w.plan().clients / 2); };
  all.push_back(c);

  c = named("half of the clients fall silent");
  c.faults = [](World& w) { w.silence(w.plan().clients / 2); };
  c.cut = [](World& w, const ClientPlan& p, size_t, Way) { return w.is_silent(p); };
  all.push_back(c);

  c = named("a client vanishes every 2 s");
  c.faults = vanishing;
  all.push_back(c);

  c = named("each, and a client vanishes every 2 s");
  c.cut = cut_each;
  c.faults = vanishing;
  all.push_back(c);

  c = named("a minority of the servers has a dead client's hold");
  c.faults = [](World& w) {
    for (size_t n = 0; n < w.minority(); ++n) w.server(n).leave_hold("k", 60'000);
  };
  all.push_back(c);

  c = named("each, and a minority has a dead client's hold for 1 s");
  c.cut = cut_each;
  c.faults = [](World& w) {
    for (size_t n = 0; n < w.minority(); ++n) w.server(n).leave_hold("k", 1'000);
  };
  all.push_back(c);
}

void add_servers(std::vector<Case>& all) {
  Case c = named("servers restart in turn with their data");
  c.faults = restarting(2'000 * kMs, 300 * kMs, true);
  all.push_back(c);

  c = named("each, and servers restart in turn with their data");
  c.cut = cut_each;
  c.faults = restarting(3'000 * kMs, 300 * kMs, true);
  all.push_back(c);

  c = named("servers restart in turn behind proxies");
  c.faults = restarting(2'000 * kMs, 300 * kMs, true);
  c.proxied = true;
  all.push_back(c);

  c = named("servers restart in turn without data");
  c.faults = restarting(4'000 * kMs, 300 * kMs, false);
  all.push_back(c);

  c = named("servers stand still in turn for 0.7 s");
  c.faults = freezing(2'000 * kMs, 700 * kMs);
  all.push_back(c);
}

void add_breaks(std::vector<Case>& all) {
  Case c = named("LOCKS BREAK on all servers soon after one grant of 20");
  c.hold = [](World& w) {
    if (!w.dice().one_in(20)) return w.dice().between(0, 20 * kMs);
    if (w.events().now_us() >= w.begin_us())
      w.events().after(w.dice().between(0, 20 * kMs), [&w] { w.break_lock(); });
    return w.dice().between(0, 800 * kMs);
  };
  all.push_back(c);
}

void add_links(std::vector<Case>& all) {
  Case c = named("clocks wrong by hours");
  c.clocks_us = int64_t{7200} * 1000 * kMs;
  all.push_back(c);

  c = named("each, with links of 5 ms");
  c.cut = cut_each;
  c.delay_us = 5 * kMs;
  all.push_back(c);

  c = named("each, with links of 50 ms");
  c.cut = cut_each;
  c.delay_us = 50 * kMs;
  c.ttl_ms = 3000;
  all.push_back(c);

  c = named("a majority of the servers is 30 ms further away, and one group misses a server");
  c.always_far = true;
  c.more_delay_us = [](World& w, const ClientPlan&, size_t server) -> int64_t {
    return server >= w.minority() ? 30 * kMs : 0;
  };
  c.cut = [](World&, const ClientPlan& p, size_t server, Way) { return p.group == 0 && server == 0; };
  all.push_back(c);

  c = named("each, with 2 % loss");
  c.cut = cut_each;
  c.loss = 0.02;
  all.push_back(c);

  c = named("none, with 2 % loss");
  c.loss = 0.02;
  all.push_back(c);
}

std::vector<Case> make_cases() {
  std::vector<Case> all = {named("none")};
  add_cuts(all);
  add_flaps(all);
  add_hermits(all);
  add_ends(all);
  add_servers(all);
  add_breaks(all);
  add_links(all);
  return all;
}

std::function<bool(World&, const ClientPlan&, size_t, Way)> some_cut(QuickDice& dice) {
  const bool one_way = dice.one_in(3);
  const Way way = dice.one_in(2) ? Way::kThere : Way::kBack;
  const int64_t period_us = dice.pick({100'000, 3'000, 1'500, 700, 500, 300}) * kMs;  // first: no change
  const auto flapping = cut_flapping(period_us, dice.one_in(3));
  const size_t groups = dice.below(3) + 1;  // so many groups have a cut
  return [=](World& w, const ClientPlan& p, size_t server, Way of) {
    if (p.group >= kExtra) return is_beyond(w, p.group, server);
    return p.group < groups && (!one_way || of == way) && flapping(w, p, server, of);
  };
}

}  // namespace

const std::vector<Case>& named_cases() {
  static const std::vector<Case> kCases = make_cases();
  return kCases;
}

const Case& case_named(const std::string& name) {
  const auto& all = named_cases();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Case& c) { return c.name == name; });
  assert(found != all.end());
  return *found;
}

Case random_trouble(uint64_t seed) {
  QuickDice dice(seed);
  Case c = named("random trouble");
  c.servers = dice.one_in(3) ? 5 : 3;
  c.clients = dice.pick({3, 6, 6, 12});
  c.calm_us = 1'000 * kMs;
  c.faulty_us = 12'000 * kMs;
  c.delay_us = dice.pick({100, 300, 300, 2'000, 10'000});
  c.cut = some_cut(dice);
  c.extra_clients = dice.one_in(3) ? dice.below(4) : 0;
  c.loss = dice.pick({0, 1, 2, 10}) / 100.0;
  c.ttl_ms = dice.pick({300, 1000, 1000, 3000});
  c.locks = dice.pick({Locks::kExclusive, Locks::kExclusive, Locks::kShared, Locks::kCounted});
  c.clocks_us = dice.pick({int64_t{3'000}, int64_t{3'000}, int64_t{3'600} * 1000 * kMs});
  c.least_rate = 0;
  c.fair = false;
  c.hold = [](World& w) {
    QuickDice& d = w.dice();
    return d.one_in(7) ? d.between(50 * kMs, 2'000 * kMs) : d.between(0, 20 * kMs);
  };
  const auto restart_us = static_cast<int64_t>(dice.between(700, 3000)) * kMs;
  c.faults = [restart_us](World& w) {
    repeat(w, restart_us, [&w](size_t n) {
      QuickDice& d = w.dice();
      const size_t server = d.below(w.plan().servers);
      if (n % 3 == 0)
        w.replace_one(d.pick({World::Victim::kHolder, World::Victim::kVoter, World::Victim::kAny}));
      if (d.one_in(3)) {
        w.server(server).freeze(w.events().now_us() + d.between(0, 800 * kMs));
      } else {
        w.restart(server, d.between(10 * kMs, 300 * kMs), d.one_in(2));
      }
    });
  };
  return c;
}

}  // namespace holdfast::simulation::ticket
