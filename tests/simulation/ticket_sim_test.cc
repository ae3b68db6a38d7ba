// The named cases of clients that wait by ticket, and random ones: each keeps what docs/safety.md promises.
// HOLDFAST_SEED is the first seed, HOLDFAST_SCHEDULES the number of random runs, HOLDFAST_CASES that of the
// named cases ("all" of them). A random run that fails is reduced to the necessary steps. HOLDFAST_CASE
// picks named cases by a part of their name, HOLDFAST_STORY prints all messages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apart.h"
#include "seeds.h"
#include "shorten.h"
#include "ticket_cases.h"
#include "ticket_plan.h"

namespace holdfast::simulation::ticket {

namespace {

void print_head() {
  std::printf("%-58s N  C  before after  rate longest  gap least/most fair pkts/g lost\n",
              "tickets simulation");
}

void print(const Case& c, const Figures& f) {
  std::printf("%-58s %zu %2zu %6.1f %6.1f %5.2f %6.2f %5.2f %8.2f %6.2f %6.1f %4llu%s\n", c.name.c_str(),
              c.servers, c.clients, f.before, f.after, f.rate, f.longest_wait_s, f.longest_gap_s,
              f.least_to_most, f.fair_share_s, f.packets, static_cast<unsigned long long>(f.lost),
              f.complaint(c).empty() ? "" : " <-");
  std::fflush(stdout);
}

Figures play(const Case& c, uint64_t seed) {
  std::function<void(const std::string&)> tell;
  if (std::getenv("HOLDFAST_STORY") != nullptr)
    tell = [](const std::string& line) { std::puts(line.c_str()); };
  return World(c, seed, tell).run();
}

void check(const Case& c, uint64_t seed) {
  const Figures f = play(c, seed);
  print(c, f);
  const std::string complaint = f.complaint(c);
  CHECK_MESSAGE(complaint.empty(), c.name << ", seed " << seed << ": " << complaint);
}

// How many named cases to play.
size_t cases_or(size_t usual) {
  const char* given = std::getenv("HOLDFAST_CASES");
  if (std::getenv("HOLDFAST_CASE") != nullptr) return named_cases().size();
  if (given == nullptr) return usual;
  return std::string(given) == "all" ? named_cases().size() : std::strtoull(given, nullptr, 10);
}

// Those that the seed selects, unless all are wanted.
void check_named(size_t servers, size_t clients, Locks locks, size_t usual) {
  const char* only = std::getenv("HOLDFAST_CASE");
  const std::vector<Case>& all = named_cases();
  const size_t wanted = std::min(cases_or(usual), all.size());
  const uint64_t seed = from_environment("HOLDFAST_SEED", 1);
  print_head();
  for (size_t n = 0; n < wanted; ++n) {
    Case c = wanted == all.size() ? all[n] : all[(seed * wanted + n) % all.size()];
    if (only != nullptr && c.name.find(only) == std::string::npos) continue;
    c.servers = servers;
    c.clients = clients;
    c.locks = locks;
    if (servers == 5) c.least_rate = c.least_rate_of_5;
    // A writer needs the release of all readers, also by the slow link of each.
    if (locks == Locks::kShared) c.always_far = true;
    check(c, seed);
  }
}

// --- random runs ---

struct Sums {
  uint64_t grants = 0;
  uint64_t lost = 0;
  double least_rate = 1e9;
  double least_share = 1;
  double longest_s = 0;

  void add(const Figures& f) {
    grants += f.grants;
    lost += f.lost;
    least_rate = std::min(least_rate, f.rate);
    least_share = std::min(least_share, f.least_to_most);
    longest_s = std::max(longest_s, f.longest_wait_s);
  }
};

// The words of a complaint, without numbers. Empty if an assertion ended the run.
std::string kind_of(const std::string& complaint) {
  std::string kind;
  for (const char c : complaint) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) kind += c;
  }
  return kind;
}

// Plays in a process of its own. Returns nullopt if nothing is wrong.
std::optional<std::string> complaint_of(const Case& c, uint64_t seed, Sums* sums = nullptr) {
  SharedText complaint;
  SharedText added;
  const bool good = succeeds_apart(sums == nullptr, [&] {
    const Figures f = play(c, seed);
    complaint.replace(f.complaint(c));
    if (sums != nullptr) {
      sums->add(f);
      added.replace({reinterpret_cast<const char*>(sums), sizeof *sums});
    }
    return f.complaint(c).empty();
  });
  if (sums != nullptr && !added.view().empty()) std::memcpy(sums, added.view().data(), sizeof *sums);
  if (good) return std::nullopt;
  return std::string(complaint.view());
}

// Reduces the plan to the steps without which it does not fail in this way.
Plan reduced(Plan plan, const std::string& complaint) {
  size_t plays = 300;
  plan.steps = shortened(std::move(plan.steps), [&](const std::vector<Step>& steps) {
    if (plays == 0) return false;
    --plays;
    Plan fewer = plan;
    fewer.steps = steps;
    const auto found = complaint_of(case_of(fewer), plan.seed);
    return found && kind_of(*found) == kind_of(complaint);
  });
  return plan;
}

template <class Explain>
void check_random(const char* what, uint64_t usual, Case (*make)(uint64_t), Explain explain) {
  const uint64_t first = from_environment("HOLDFAST_SEED", 1);
  const uint64_t runs = from_environment("HOLDFAST_SCHEDULES", usual);
  Sums sums;
  size_t failed = 0;
  for (uint64_t seed = first; seed < first + runs && failed < 3; ++seed) {
    const auto complaint = complaint_of(make(seed), seed, &sums);
    if (!complaint) continue;
    ++failed;
    std::cout << "tickets simulation: " << what << ": seed " << seed << ": " << *complaint << "\n";
    explain(seed, *complaint);
  }
  std::cout << "tickets simulation: " << what << ": seeds " << first << " to " << first + runs - 1 << ": "
            << sums.grants << " grants, " << sums.lost << " holds lost, least rate " << sums.least_rate
            << ", least to most " << sums.least_share << ", longest wait " << sums.longest_s << " s\n";
  CHECK(failed == 0);
}

// The servers on which the client cannot count.
size_t missing_at(const Plan& plan, size_t client, int64_t us) {
  std::set<size_t> missing;
  for (const Step& s : plan.steps) {
    if (s.kind == Step::Kind::kVanish || s.kind == Step::Kind::kSilence) continue;
    const bool concerns = s.kind != Step::Kind::kCut || s.client == client;
    if (concerns && s.at_us <= us && us < s.at_us + s.for_us) missing.insert(s.server);
  }
  return missing.size();
}

// --- flaws ---

Case shorter(Case c) {
  c.calm_us = 2'000 * kMs;
  c.faulty_us = 5'000 * kMs;
  return c;
}

// Whether one of so many runs with a flaw has a fault of safety.
template <class Add>
bool finds(Add add_flaw, uint64_t runs) {
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    Case c = random_trouble(seed);
    add_flaw(c);
    const Figures f = play(c, seed);
    if (f.faults.empty()) continue;
    MESSAGE("seed " << seed << ": " << f.faults.front());
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("tickets simulation: exclusive locks on three servers are live in each cut") {
  check_named(3, 6, Locks::kExclusive, 4);
}

TEST_CASE("tickets simulation: exclusive locks on five servers are live in each cut") {
  check_named(5, 12, Locks::kExclusive, 2);
}

TEST_CASE("tickets simulation: readers and writers are live in each cut") {
  check_named(3, 12, Locks::kShared, 1);
}

// They need all servers, so a cut ends their liveness by nature.
TEST_CASE("tickets simulation: counted locks are live while all servers are reached") {
  const uint64_t seed = from_environment("HOLDFAST_SEED", 1);
  print_head();
  for (const char* name :
       {"none", "half of the clients vanish", "a client vanishes every 2 s", "clocks wrong by hours"}) {
    Case c = case_named(name);
    c.locks = Locks::kCounted;
    check(c, seed);
  }
  // All servers are needed, so the rate is that of the slowest link from the begin on.
  Case far = case_named("each group is 100 ms from another server");
  far.locks = Locks::kCounted;
  far.least_rate = 0;
  const Figures moved = play(far, seed);
  print(far, moved);
  far.always_far = true;
  const Figures always = play(far, seed);
  print(far, always);
  CHECK(moved.complaint(far).empty());
  CHECK(moved.after > always.before / 2);
}

TEST_CASE("tickets simulation: random cuts in which each client reaches a majority") {
  check_random(
      "random cuts", 6, [](uint64_t seed) { return case_of(plan_of(seed)); },
      [](uint64_t seed, const std::string& complaint) {
        std::cout << "The necessary steps:\n" << written(reduced(plan_of(seed), complaint));
      });
}

TEST_CASE("tickets simulation: everything at once is safe") {
  check_random("everything at once", 3, random_trouble, [](uint64_t, const std::string&) {});
}

TEST_CASE("tickets simulation: a plan leaves each client a majority at each moment") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = plan_of(seed);
    for (const Step& step : plan.steps) {
      for (size_t client = 0; client < plan.clients; ++client) {
        if (step.kind != Step::Kind::kCut || step.client == client)
          REQUIRE(missing_at(plan, client, step.at_us) <= (plan.servers - 1) / 2);
      }
    }
  }
}

// --- the judge ---

TEST_CASE("tickets simulation: the judge detects clients that stay in the queues without a majority") {
  Case c = shorter(case_named("each, and three clients that reach a minority"));
  c.times.live = {60'000'000};
  CHECK(play(c, 1).complaint(c).starts_with("the rate is"));
}

TEST_CASE("tickets simulation: the judge detects clients that open no further connection") {
  Case c = shorter(case_named("cuts change every 0.3 s"));
  c.times.silence = {60'000'000};
  CHECK(play(c, 1).complaint(c).starts_with("the rate is"));
}

TEST_CASE("tickets simulation: the judge detects a server that grants during its recovery wait") {
  CHECK(finds([](Case& c) { c.recovers = false; }, 40));
}

TEST_CASE("tickets simulation: the judge detects a validity that is longer than the hold") {
  CHECK(finds([](Case& c) { c.drift = -0.5; }, 40));
}

}  // namespace holdfast::simulation::ticket
