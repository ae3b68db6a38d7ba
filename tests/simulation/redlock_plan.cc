// Draws plans. Each plan has a random subset of the features ("swarm testing"), so that rare combinations
// are common.
#include "redlock_plan.h"

#include <algorithm>

#include "dice.h"

namespace holdfast::simulation::redlock {

namespace {

constexpr uint64_t kHourUs = 3'600'000'000;

class Planner {
 public:
  Planner(uint64_t seed, Flaw flaw) : dice_(seed) {
    plan_.world.seed = seed;
    plan_.world.flaw = flaw;
  }

  Plan draw() {
    draw_times();
    draw_world();
    span_us_ = ttl_us() * dice_.between(2, 9);
    const bool keeps = dice_.one_in(2);
    if (keeps) add_keeper();
    add_sessions(keeps);
    if (feature()) add_rolling_restart();
    add_faults();
    return std::move(plan_);
  }

 private:
  bool feature() { return dice_.one_in(2); }
  bool rare_feature() { return dice_.one_in(4); }
  int64_t ttl_us() const { return plan_.world.ttl_ms * 1000; }

  void draw_times() {
    Parameters& w = plan_.world;
    if (feature()) {  // hasty: the ttl is as short as the delays
      w.ttl_ms = dice_.between(10, 120);
      w.server_timeout_ms = dice_.between(5, 40);
      w.slowest_us = dice_.pick({int64_t{500}, int64_t{3000}, int64_t{20000}});
    } else {
      w.slowest_us = dice_.pick({int64_t{500}, int64_t{2000}});
      w.ttl_ms = dice_.one_in(4) ? dice_.between(500, 1000) : dice_.between(100, 300);
      w.server_timeout_ms = dice_.between(5, std::max<int64_t>(w.ttl_ms / 8, 5));
    }
  }

  void draw_world() {
    Parameters& w = plan_.world;
    w.servers = dice_.pick({size_t{1}, size_t{3}, size_t{3}, size_t{3}, size_t{5}});
    w.clients = static_cast<size_t>(dice_.between(1, 4));
    if (rare_feature()) w.lost_one_in = dice_.pick({uint64_t{20}, uint64_t{6}});
    if (rare_feature()) w.resent_one_in = 4;
    if (rare_feature()) w.overtaken_one_in = 8;
    w.clocks_differ = feature();
    w.clocks_agree = rare_feature();
    // Below the lead that a client may name, above it, and above the lead that only some may name.
    if (rare_feature()) w.ahead_us = dice_.pick({kHourUs / 2, 2 * kHourUs, 1000 * kHourUs});
    if (feature()) w.keys = 2;
    if (rare_feature()) w.limit = static_cast<uint32_t>(dice_.between(1, 3));
    shares_ = rare_feature();
    reboots_ = rare_feature();
    sets_walls_ = rare_feature();
  }

  Step& add(Step::Kind kind, int64_t at_us) {
    Step step;
    step.kind = kind;
    step.id = ++last_id_;
    step.at_us = at_us;
    return plan_.steps.emplace_back(step);
  }

  void draw_session(Step& step) {
    step.key = dice_.below(plan_.world.keys);
    step.mode = plan_.world.counts(step.key)  ? Mode::kCounted
                : shares_ && !dice_.one_in(3) ? Mode::kShared
                                              : Mode::kExclusive;
    step.max_wait_ms = dice_.between(2, std::max<int64_t>(plan_.world.ttl_ms / 5, 40));
    if (!dice_.one_in(4)) step.wait_ms = dice_.one_in(2) ? 0 : dice_.between(1, 200);
    if (!feature()) step.cancel_us = dice_.between(1000, 200000);
  }

  void add_keeper() {
    Step& step = add(Step::Kind::kSession, dice_.between(0, ttl_us() / 4));
    draw_session(step);
    step.cancel_us = 0;
    step.renews = true;
    step.for_us = span_us_;
  }

  void add_sessions(bool keeps) {
    const size_t first = keeps ? 1 : 0;
    for (size_t client = first; client < plan_.world.clients; ++client) {
      for (int64_t left = dice_.between(1, 3); left > 0; --left) {
        Step& step = add(Step::Kind::kSession, dice_.between(0, span_us_));
        step.client = client;
        draw_session(step);
        step.renews = dice_.one_in(3);
        step.for_us = dice_.between(100, ttl_us() * (step.renews ? 4 : 1));
      }
    }
  }

  void draw_restart(Step& step, Memory memory) {
    step.memory = memory;
    if (memory == Memory::kSnapshot) step.behind_us = dice_.between(0, ttl_us());
    step.reboots = reboots_ && dice_.one_in(2);
    if (sets_walls_) draw_wall_clock(step);
    if (loads_) step.loading_us = dice_.between(0, ttl_us() / 4);
    if (recovers_)
      step.recovery_ms = dice_.pick({plan_.world.ttl_ms / 2, std::max<int64_t>(plan_.world.ttl_ms, 130)});
  }

  // After a reboot deadlines follow the wall clock. So in plans with reboots it moves by a TTL at most:
  // otherwise old holds would stay for hours.
  void draw_wall_clock(Step& step) {
    const int64_t most_us = reboots_ ? ttl_us() : dice_.pick({ttl_us(), 2 * static_cast<int64_t>(kHourUs)});
    step.wall_moves_us = dice_.between(-most_us, most_us);
  }

  Memory any_memory() {
    if (!forgets_) return Memory::kAll;
    return dice_.pick({Memory::kAll, Memory::kSnapshot, Memory::kNone});
  }

  // Each server in turn. Half of these restarts have each server down for longer than the ttl; the others
  // shorter or longer, with gaps in which a renewal heals, or does not.
  void add_rolling_restart() {
    loads_ = rare_feature();
    recovers_ = rare_feature();
    forgets_ = feature();
    const Memory memory = any_memory();
    const bool mixed = dice_.one_in(4);
    const bool once_healed = feature();
    const bool all_long = feature();
    const int64_t longest_us = all_long ? ttl_us() * 3 : dice_.pick({ttl_us() / 4, ttl_us() * 2});
    const int64_t longest_gap_us = dice_.pick({ttl_us() / 2, ttl_us() * 3 / 2});
    int64_t at_us = dice_.between(0, ttl_us());
    for (size_t server = 0; server < plan_.world.servers; ++server) {
      Step& step = add(Step::Kind::kLeave, at_us);
      step.server = server;
      step.for_us = dice_.between(all_long ? ttl_us() + 1000 : 0, longest_us);
      step.once_healed = once_healed;
      draw_restart(step, mixed ? any_memory() : memory);
      at_us += step.for_us + dice_.between(0, longest_gap_us);
    }
    span_us_ = std::max(span_us_, at_us);
    for (Step& step : plan_.steps) {  // the keeper sees them all
      if (step.client == 0 && step.renews) step.for_us = std::max(step.for_us, at_us + ttl_us());
    }
  }

  void add_faults() {
    // For these flaws the judge needs restarts.
    const bool flawed = plan_.world.flaw == Flaw::kCounterReset || plan_.world.flaw == Flaw::kNoRecovery;
    const bool leaves = feature() || flawed;
    const bool jumps = rare_feature();
    const bool cuts = feature();
    const bool stalls = rare_feature();
    loads_ = feature();
    recovers_ = feature() || flawed;
    forgets_ = rare_feature() || flawed;
    for (int64_t n = dice_.between(1, 4); n > 0; --n) {
      if (leaves) add_leave();
      if (jumps) add_jump();
      if (cuts) add_cut();
      if (stalls && feature()) add_stall();
    }
  }

  void add_leave() {
    Step& step = add(Step::Kind::kLeave, dice_.between(0, span_us_));
    step.server = dice_.below(plan_.world.servers);
    step.for_us = dice_.between(0, ttl_us() * 2);
    draw_restart(step, any_memory());
  }

  void add_jump() {
    Step& step = add(Step::Kind::kJump, dice_.between(0, span_us_));
    step.server = dice_.below(plan_.world.servers);
    step.for_us = dice_.between(1000, ttl_us());
  }

  void add_cut() {
    Step& step = add(Step::Kind::kCut, dice_.between(0, span_us_));
    step.client = dice_.below(plan_.world.clients);
    step.server = dice_.below(plan_.world.servers);
    step.for_us = dice_.between(1000, ttl_us() * 2);
  }

  void add_stall() {
    Step& step = add(Step::Kind::kStall, dice_.between(0, span_us_));
    step.client = dice_.below(plan_.world.clients);
    step.for_us = dice_.between(1000, ttl_us() * 2);
  }

  QuickDice dice_;
  Plan plan_;
  uint64_t last_id_ = 0;
  int64_t span_us_ = 0;
  bool shares_ = false;
  bool reboots_ = false;
  bool sets_walls_ = false;
  bool loads_ = false;
  bool recovers_ = false;
  bool forgets_ = false;
};

std::string ms(int64_t us) {
  const std::string part = std::to_string(us % 1000);
  return std::to_string(us / 1000) + "." + std::string(3 - part.size(), '0') + part + " ms";
}

std::string signed_ms(int64_t us) { return us < 0 ? "-" + ms(-us) : "+" + ms(us); }

std::string written_session(const Step& s) {
  std::string out = "client " + std::to_string(s.client) + " acquires key " + std::to_string(s.key);
  out += s.mode == Mode::kShared ? " SHARED" : s.mode == Mode::kCounted ? " LIMIT" : "";
  out += s.wait_ms < 0 ? ", one attempt" : s.wait_ms == 0 ? ", waits" : ", waits " + ms(s.wait_ms * 1000);
  if (s.cancel_us != 0) out += ", cancels after " + ms(s.cancel_us);
  return out + (s.renews ? "; renews for " : "; holds for up to ") + ms(s.for_us);
}

std::string written_leave(const Step& s) {
  std::string out = "server " + std::to_string(s.server) + " stops for " + ms(s.for_us);
  if (s.once_healed) out += ", once all others have the hold";
  if (s.reboots) out += "; its machine restarts";
  if (s.wall_moves_us != 0) out += "; its wall clock is set by " + signed_ms(s.wall_moves_us);
  if (s.memory == Memory::kNone) out += "; forgets all";
  if (s.memory == Memory::kSnapshot) out += "; forgets the last " + ms(s.behind_us);
  if (s.loading_us != 0) out += "; LOADING for " + ms(s.loading_us);
  if (s.recovery_ms != 0) out += "; RECOVERING for " + ms(s.recovery_ms * 1000);
  return out;
}

std::string written(const Step& s) {
  const std::string client = "client " + std::to_string(s.client);
  const std::string server = "server " + std::to_string(s.server);
  switch (s.kind) {
    case Step::Kind::kSession:
      return written_session(s);
    case Step::Kind::kLeave:
      return written_leave(s);
    case Step::Kind::kJump:
      return "the clock of " + server + " jumps " + ms(s.for_us) + " forward";
    case Step::Kind::kCut:
      return "no message passes between " + client + " and " + server + " for " + ms(s.for_us);
    case Step::Kind::kStall:
      return client + " stands still for " + ms(s.for_us);
  }
  return "";
}

}  // namespace

bool Parameters::calm() const {
  return lost_one_in == 0 && resent_one_in == 0 && overtaken_one_in == 0 &&
         slowest_us * 40 <= ttl_ms * 1000 && server_timeout_ms * 8 <= ttl_ms &&
         server_timeout_ms * 1000 > 2 * slowest_us;
}

bool Parameters::counts(size_t key) const { return limit != 0 && key == 0; }

int64_t Step::end_us() const { return at_us + for_us + loading_us + recovery_ms * 1000 + cancel_us; }

Plan plan_of(uint64_t seed, Flaw flaw) { return Planner(seed, flaw).draw(); }

std::string written(const Plan& plan) {
  const Parameters& w = plan.world;
  const auto number = [](auto n) { return std::to_string(n); };
  std::string out = number(w.servers) + " servers, " + number(w.clients) + " clients, ttl " +
                    number(w.ttl_ms) + " ms, timeout of a server " + number(w.server_timeout_ms) +
                    " ms, delays up to " + ms(w.slowest_us);
  if (w.limit != 0) out += ", limit of key 0 " + number(w.limit);
  if (w.lost_one_in != 0) out += ", 1 message in " + number(w.lost_one_in) + " lost";
  if (w.resent_one_in != 0) out += ", 1 LOCK in " + number(w.resent_one_in) + " arrives twice";
  if (w.overtaken_one_in != 0) out += ", 1 LOCK in " + number(w.overtaken_one_in) + " overtaken";
  if (w.clocks_differ) out += ", clocks differ";
  if (w.clocks_agree) out += ", wall clocks agree";
  if (w.ahead_us != 0) out += ", tokens of server 0 ahead by " + ms(static_cast<int64_t>(w.ahead_us));
  out += "\n";
  for (const Step& step : plan.steps) out += "at " + ms(step.at_us) + ": " + written(step) + "\n";
  return out;
}

}  // namespace holdfast::simulation::redlock
