// Draws the steps, and drops each one that would leave a client without a majority.
#include "ticket_plan.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "dice.h"

namespace holdfast::simulation::ticket {

namespace {

constexpr size_t kEvery = SIZE_MAX;  // all clients
constexpr int64_t kTtlMs = 1000;
// Cuts of this average are partly as short as the time after which TCP repeats a packet.
constexpr int64_t kQuickUs = 300 * kMs;
constexpr int64_t kReturnUs = 200 * kMs;  // until the clients have found a server that is back

// Who cannot count on which server, and when.
class Reach {
 public:
  struct Span {
    size_t client = kEvery;
    size_t server = 0;
    int64_t from_us = 0;
    int64_t to_us = 0;
  };

  Reach(size_t servers, size_t clients) : servers_(servers), by_client_(clients) {}

  // Adds the span if each client keeps a majority.
  bool add(const Span& span) {
    for (size_t client = 0; client < by_client_.size(); ++client) {
      if (concerns(span, client) && !fits(by_client_[client], span)) return false;
    }
    for (size_t client = 0; client < by_client_.size(); ++client) {
      if (concerns(span, client)) by_client_[client].push_back(span);
    }
    return true;
  }

 private:
  static bool concerns(const Span& span, size_t client) {
    return span.client == kEvery || span.client == client;
  }
  bool fits(const std::vector<Span>& spans, const Span& added) const {
    if (missing_at(spans, added, added.from_us) > (servers_ - 1) / 2) return false;
    return std::all_of(spans.begin(), spans.end(), [&](const Span& s) {
      const bool inside = s.from_us >= added.from_us && s.from_us < added.to_us;
      return !inside || missing_at(spans, added, s.from_us) <= (servers_ - 1) / 2;
    });
  }
  static size_t missing_at(const std::vector<Span>& spans, const Span& added, int64_t us) {
    uint64_t missing = uint64_t{1} << added.server;
    for (const Span& s : spans) {
      if (s.from_us <= us && us < s.to_us) missing |= uint64_t{1} << s.server;
    }
    return static_cast<size_t>(__builtin_popcountll(missing));
  }

  size_t servers_;
  std::vector<std::vector<Span>> by_client_;
};

class Planner {
 public:
  explicit Planner(uint64_t seed)
      : dice_(seed), plan_(draw_world(seed)), reach_(plan_.servers, plan_.clients) {}

  Plan draw() {
    if (dice_.one_in(2)) add_server_faults();
    if (dice_.one_in(3)) add_ends();
    for (size_t client = 0; client < plan_.clients; ++client) {
      if (dice_.one_in(4)) continue;
      for (size_t n = 0; n < (plan_.servers - 1) / 2; ++n) add_cuts(client);
    }
    return std::move(plan_);
  }

 private:
  Plan draw_world(uint64_t seed) {
    Plan p;
    p.seed = seed;
    p.servers = dice_.one_in(3) ? 5 : 3;
    p.clients = p.servers == 3 ? dice_.pick({3, 6, 6}) : dice_.pick({5, 8, 12});
    p.locks = dice_.one_in(4) ? Locks::kShared : Locks::kExclusive;
    p.delay_us = dice_.pick({100, 300, 300, 2'000, 10'000});
    p.pace_us = dice_.pick({150, 300, 700, 2'000, 6'000}) * kMs;
    if (p.pace_us > 2'000 * kMs) p.faulty_us = 12'000 * kMs;
    return p;
  }

  // Around that time.
  int64_t around(int64_t us) { return dice_.between(us / 2, us * 3 / 2); }

  void add_server_faults() {
    const auto kinds = {Step::Kind::kRestart, Step::Kind::kRestart, Step::Kind::kForgetful,
                        Step::Kind::kFreeze, Step::Kind::kLeftover};
    const Step::Kind only = dice_.pick(kinds);
    const bool mixed = dice_.one_in(2);
    for (int64_t at_us = around(1'000 * kMs); at_us < plan_.faulty_us; at_us += around(2'500 * kMs)) {
      Step s;
      s.kind = mixed ? dice_.pick(kinds) : only;
      s.at_us = at_us;
      s.server = dice_.below(plan_.servers);
      s.for_us = s.kind == Step::Kind::kFreeze     ? dice_.between(50, 800) * kMs
                 : s.kind == Step::Kind::kLeftover ? dice_.between(500, 3'000) * kMs
                                                   : dice_.between(10, 300) * kMs;
      // A leftover hold begins when the lock is free, and nobody else gets it there before.
      int64_t more_us = kReturnUs;
      if (s.kind == Step::Kind::kForgetful) more_us += kTtlMs * 102 / 100 * kMs;
      if (s.kind == Step::Kind::kLeftover) more_us += 1'500 * kMs;
      if (reach_.add({kEvery, s.server, s.at_us, s.at_us + s.for_us + more_us})) plan_.steps.push_back(s);
    }
  }

  void add_ends() {
    for (int64_t at_us = around(1'500 * kMs); at_us < plan_.faulty_us; at_us += around(4'000 * kMs)) {
      Step s;
      s.kind = dice_.pick({Step::Kind::kVanish, Step::Kind::kSilence});
      s.at_us = at_us;
      s.client = dice_.below(plan_.clients);
      plan_.steps.push_back(s);
    }
  }

  void add_cuts(size_t client) {
    const bool one_way = dice_.one_in(3);
    for (int64_t at_us = dice_.between(0, plan_.pace_us); at_us < plan_.faulty_us;) {
      Step s;
      s.at_us = at_us;
      s.for_us = std::min(around(plan_.pace_us), plan_.faulty_us - at_us);
      s.client = client;
      s.server = dice_.below(plan_.servers);
      if (one_way) s.ways = dice_.pick({Step::Ways::kBoth, Step::Ways::kThere, Step::Ways::kBack});
      if (reach_.add({client, s.server, at_us, at_us + s.for_us})) plan_.steps.push_back(s);
      at_us += s.for_us + (dice_.one_in(2) ? 0 : around(plan_.pace_us));
    }
  }

  QuickDice dice_;
  Plan plan_;
  Reach reach_;
};

void happen(World& w, const Step& s) {
  Server& server = w.server(s.server);
  switch (s.kind) {
    case Step::Kind::kCut:
      return;
    case Step::Kind::kRestart:
    case Step::Kind::kForgetful:
      return w.restart(s.server, s.for_us, s.kind == Step::Kind::kRestart);
    case Step::Kind::kFreeze:
      return server.freeze(w.events().now_us() + s.for_us);
    case Step::Kind::kLeftover:
      return server.leave_hold("k", s.for_us / kMs);
    case Step::Kind::kVanish:
    case Step::Kind::kSilence:
      return w.replace(s.client, s.kind == Step::Kind::kSilence);
  }
}

bool goes(Step::Ways ways, Way way) {
  return ways == Step::Ways::kBoth || (ways == Step::Ways::kThere) == (way == Way::kThere);
}

const char* name_of(Step::Kind kind) {
  constexpr std::array kNames = {"cut",    "restart", "restart without data", "freeze", "leftover hold",
                                 "vanish", "silence"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string ms(int64_t us) { return std::to_string(us / kMs) + " ms"; }

}  // namespace

Plan plan_of(uint64_t seed) { return Planner(seed).draw(); }

Case case_of(const Plan& plan) {
  Case c;
  c.name = "random cuts " + std::to_string(plan.seed);
  c.servers = plan.servers;
  c.clients = c.groups = plan.clients;
  c.locks = plan.locks;
  c.ttl_ms = kTtlMs;
  c.delay_us = plan.delay_us;
  c.calm_us = 3'000 * kMs;
  c.faulty_us = plan.faulty_us;
  c.least_rate = plan.pace_us <= kQuickUs ? 1.0 / 3 : 0.5;
  // By place of the client and by server: the cuts.
  auto cuts = std::make_shared<std::vector<std::vector<Step>>>(plan.clients * plan.servers);
  for (const Step& s : plan.steps) {
    if (s.kind == Step::Kind::kCut) (*cuts)[s.client * plan.servers + s.server].push_back(s);
    if (s.kind == Step::Kind::kVanish || s.kind == Step::Kind::kSilence) c.excused_us += kTtlMs * kMs;
  }
  c.cut = [cuts](World& w, const ClientPlan& p, size_t server, Way way) {
    if (w.is_silent(p) && way == Way::kBack) return true;
    const int64_t us = w.events().now_us() - w.begin_us();
    const std::vector<Step>& steps = (*cuts)[p.group * w.plan().servers + server];
    return std::any_of(steps.begin(), steps.end(), [&](const Step& s) {
      return s.at_us <= us && us < s.at_us + s.for_us && goes(s.ways, way);
    });
  };
  c.faults = [steps = plan.steps](World& w) {
    for (const Step& s : steps) w.events().after(s.at_us, [&w, s] { happen(w, s); });
  };
  return c;
}

std::string written(const Plan& plan) {
  std::string text = "  " + std::to_string(plan.servers) + " servers, " + std::to_string(plan.clients) +
                     (plan.locks == Locks::kShared ? " readers and writers" : " clients") + ", links of " +
                     std::to_string(plan.delay_us) + " us\n";
  for (const Step& s : plan.steps) {
    text += "  at " + ms(s.at_us) + ": " + name_of(s.kind);
    if (s.kind == Step::Kind::kVanish || s.kind == Step::Kind::kSilence) {
      text += " of client " + std::to_string(s.client);
    } else {
      text += s.kind == Step::Kind::kCut ? " between client " + std::to_string(s.client) + " and server "
                                         : " of server ";
      text += std::to_string(s.server) + " for " + ms(s.for_us);
    }
    if (s.ways != Step::Ways::kBoth) text += s.ways == Step::Ways::kThere ? ", requests" : ", answers";
    text += "\n";
  }
  return text;
}

}  // namespace holdfast::simulation::ticket
