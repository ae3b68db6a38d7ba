// Random schedules of clients on several servers. HOLDFAST_SCHEDULES is the number of schedules,
// HOLDFAST_SEED the first seed. A schedule that fails is reduced to the necessary steps, and printed with
// all its messages.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "apart.h"
#include "redlock_world.h"
#include "shorten.h"

namespace holdfast::simulation::redlock {

namespace {

constexpr uint64_t kBatch = 500;  // schedules of one process

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// A new engine gets the memory of a former one, not new pages.
void reuse_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

std::string play(const Plan& plan, Tally& tally, World::Teller teller = nullptr) {
  return World(plan, tally, std::move(teller)).run();
}

// The words of a fault, without numbers and names. Empty if an assertion ended the run.
std::string kind_of(const std::string& wrong) {
  std::string kind;
  for (const char c : wrong.substr(std::min(wrong.find(": "), wrong.size())))
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) kind += c;
  return kind;
}

// Whether the plan fails with a fault of this kind.
bool fails(const Plan& plan, const std::string& kind) {
  Tally tally;
  SharedText found;
  const bool good = succeeds_apart(true, [&] {
    const std::string wrong = play(plan, tally);
    found.replace(kind_of(wrong));
    return wrong.empty();
  });
  return !good && found.view() == kind;
}

// Reduces a plan to what its fault needs: first the fewest steps, then the simplest ones.
class Reducer {
 public:
  Reducer(Plan plan, std::string kind) : plan_(std::move(plan)), kind_(std::move(kind)) {}

  Plan reduce() {
    for (std::string before; before != written(plan_);) {
      before = written(plan_);
      plan_.steps = shortened(std::move(plan_.steps), [&](const std::vector<Step>& steps) {
        return fails({plan_.world, steps}, kind_);
      });
      simplify_world();
      for (size_t at = 0; at < plan_.steps.size(); ++at) simplify_step(at);
    }
    return std::move(plan_);
  }

 private:
  // Makes one change, unless the fault needs the state before.
  template <class Change>
  bool change(Change apply) {
    Plan changed = plan_;
    apply(changed);
    if (written(changed) == written(plan_) || !fails(changed, kind_)) return false;
    plan_ = std::move(changed);
    return true;
  }

  void simplify_world() {
    change([](Plan& p) { p.world.lost_one_in = 0; });
    change([](Plan& p) { p.world.resent_one_in = 0; });
    change([](Plan& p) { p.world.overtaken_one_in = 0; });
    change([](Plan& p) { p.world.ahead_us = 0; });
    change([](Plan& p) { p.world.clocks_differ = false; });
    change([](Plan& p) { p.world.clocks_agree = true; });
    change([](Plan& p) {
      if (p.world.limit != 0) return;
      p.world.keys = 1;
      for (Step& s : p.steps) s.key = 0;
    });
    change([](Plan& p) {
      p.world.clients = 1;
      for (const Step& s : p.steps) p.world.clients = std::max(p.world.clients, s.client + 1);
    });
    change([](Plan& p) {
      const bool fits =
          std::all_of(p.steps.begin(), p.steps.end(), [](const Step& s) { return s.server < 3; });
      if (fits && p.world.servers > 3) p.world.servers = 3;
    });
  }

  void simplify_step(size_t at) {
    change([at](Plan& p) {
      p.steps[at].mode = p.world.counts(p.steps[at].key) ? Mode::kCounted : Mode::kExclusive;
    });
    change([at](Plan& p) { p.steps[at].cancel_us = 0; });
    change([at](Plan& p) { p.steps[at].wait_ms = -1; });
    change([at](Plan& p) { p.steps[at].loading_us = 0; });
    change([at](Plan& p) { p.steps[at].recovery_ms = 0; });
    change([at](Plan& p) { p.steps[at].once_healed = false; });
    change([at](Plan& p) { p.steps[at].reboots = false; });
    change([at](Plan& p) { p.steps[at].wall_moves_us = 0; });
    change([at](Plan& p) { p.steps[at].memory = Memory::kAll; });
    change([at](Plan& p) { p.steps[at].memory = Memory::kNone; });
    for (const auto time : {&Step::at_us, &Step::for_us, &Step::behind_us}) shorten(at, time);
  }

  // Round times are easier to read, and short ones have fewer messages.
  void shorten(size_t at, int64_t Step::*time) {
    while (change([&](Plan& p) { p.steps[at].*time /= 2; })) {
    }
    for (const int64_t unit_us : {100000, 10000, 1000}) {
      change([&](Plan& p) {
        int64_t& us = p.steps[at].*time;
        if (us >= unit_us) us = us / unit_us * unit_us;
      });
    }
  }

  Plan plan_;
  const std::string kind_;
};

void explain(uint64_t seed, Flaw flaw) {
  SharedText text;
  succeeds_apart(true, [&] {
    Tally tally;
    text.replace(kind_of(play(plan_of(seed, flaw), tally)));
    return true;
  });
  const Plan plan = Reducer(plan_of(seed, flaw), std::string(text.view())).reduce();
  text.replace("");
  succeeds_apart(false, [&] {
    Tally tally;
    return play(plan, tally, [&](const std::string& line) { text.append(line); }).empty();
  });
  std::cout << "redlock simulation: seed " << seed << " fails. The necessary steps:\n"
            << written(plan) << "Their events:\n"
            << text.view() << std::flush;
}

// Plays schedules in a process of its own. Returns the first seed that fails; `last` if there is none.
uint64_t first_failure(uint64_t first, uint64_t last, Tally& tally) {
  SharedText state;
  const auto save = [&](uint64_t seed) {
    state.replace({reinterpret_cast<const char*>(&seed), sizeof seed});
    state.append({reinterpret_cast<const char*>(&tally), sizeof tally});
  };
  const bool good = succeeds_apart(false, [&] {
    reuse_memory();
    for (uint64_t seed = first; seed < last; ++seed) {
      save(seed);
      const std::string wrong = play(plan_of(seed, Flaw::kNone), tally);
      if (wrong.empty()) continue;
      std::cout << "redlock simulation: seed " << seed << ": " << wrong << "\n";
      return false;
    }
    save(last);
    return true;
  });
  uint64_t seed = first;
  std::memcpy(&seed, state.view().data(), sizeof seed);
  std::memcpy(&tally, state.view().data() + sizeof seed, sizeof tally);
  return good ? last : seed;
}

int failures(uint64_t first, uint64_t last, Tally& tally) {
  int found = 0;
  while (first < last && found < 3) {
    const uint64_t end = std::min(last, first + kBatch);
    const uint64_t seed = first_failure(first, end, tally);
    first = seed == end ? end : seed + 1;
    if (seed == end) continue;
    ++found;
    explain(seed, Flaw::kNone);
  }
  return found;
}

// Whether the judge finds a fault that contains `expected` in one of so many schedules. `first`: shortly
// before one that has it, to save time.
bool finds(Flaw flaw, uint64_t first, uint64_t schedules, const std::string& expected) {
  SharedText found;
  succeeds_apart(true, [&] {
    reuse_memory();
    Tally tally;
    for (uint64_t seed = first; seed < first + schedules && found.view().empty(); ++seed) {
      const std::string wrong = play(plan_of(seed, flaw), tally);
      if (wrong.find(expected) != std::string::npos)
        found.replace("seed " + std::to_string(seed) + ": " + wrong);
    }
    return true;
  });
  MESSAGE(found.view());
  return !found.view().empty();
}

}  // namespace

TEST_CASE("redlock simulation: clients on several servers keep all promises under random faults") {
  const uint64_t first = number_from("HOLDFAST_SEED", 1);
  const uint64_t schedules = number_from("HOLDFAST_SCHEDULES", 500);
  Tally tally;
  const int found = failures(first, first + schedules, tally);
  std::cout << "redlock simulation: seeds " << first << " to " << first + schedules - 1 << ": "
            << tally.acquired << " acquired, " << tally.fenced << " of them by FENCE, " << tally.failed
            << " not acquired, " << tally.renewed << " renewals, " << tally.healed << " LOCKs to heal, "
            << tally.restarts << " restarts, " << tally.reboots << " of them of the machine, " << tally.kept
            << " holds kept while every server restarted, " << tally.forgotten
            << " holds without a quorum, " << tally.lost << " lost, " << tally.excused
            << " of them in spite of renewals, " << tally.steps << " events\n";
  CHECK(found == 0);
  if (schedules < 500) return;  // enough schedules to reach the checked cases
  CHECK(tally.acquired > schedules);
  CHECK(tally.fenced > schedules / 10);
  CHECK(tally.renewed > schedules);
  CHECK(tally.healed > schedules / 10);
  CHECK(tally.restarts > schedules);
  CHECK(tally.reboots > schedules / 10);
  CHECK(tally.kept > schedules / 50);
}

// The client stands still between the replies of two servers and the timeout of the third one.
TEST_CASE("redlock simulation: a client that stands still while it acquires renews the lock in time") {
  Plan plan;
  plan.world.clocks_differ = false;
  plan.world.ttl_ms = 733;
  plan.world.server_timeout_ms = 20;
  plan.steps.resize(3);
  Step& session = plan.steps[0];
  session.id = 1;
  session.renews = true;
  session.for_us = 1000000;
  Step& cut = plan.steps[1];
  cut.kind = Step::Kind::kCut;
  cut.id = 2;
  cut.server = 1;
  cut.for_us = 70000;
  Step& stall = plan.steps[2];
  stall.kind = Step::Kind::kStall;
  stall.id = 3;
  stall.at_us = 5000;
  Tally tally;
  for (int64_t ms = 70; ms < plan.world.ttl_ms; ++ms) {
    plan.world.seed = static_cast<uint64_t>(ms);
    stall.for_us = ms * 1000;
    const std::string wrong = play(plan, tally);
    CHECK_MESSAGE(wrong.empty(), ms << " ms: " << wrong);
  }
  CHECK(tally.acquired > 600);
  CHECK(tally.lost < 3);  // the client stood still almost until the end of the validity
  CHECK(tally.lost == tally.excused);
}

TEST_CASE("redlock simulation: the judge detects a hold that ends because renewals do not heal") {
  CHECK(finds(Flaw::kNoHealing, 265, 3000, "lost a lock"));
  CHECK(finds(Flaw::kNoHealing, 55, 3000, "does not heal"));
}

TEST_CASE("redlock simulation: the judge detects that a restart resets one server's counter") {
  CHECK(finds(Flaw::kCounterReset, 30, 3000, "token"));
}

TEST_CASE("redlock simulation: the judge detects clocks that differ by more than the drift") {
  CHECK(finds(Flaw::kClocksAstray, 1, 3000, "relies on a validity"));
}

TEST_CASE("redlock simulation: the judge detects a server that grants during its recovery wait") {
  CHECK(finds(Flaw::kNoRecovery, 1190, 20000, "two hold"));
}

}  // namespace holdfast::simulation::redlock
