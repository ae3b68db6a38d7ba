// Clients that wait by ticket on several servers, in a simulated network. HOLDFAST_CUTS is the number of
// random worlds, HOLDFAST_SEED the first seed. HOLDFAST_STORY=yes prints all messages of a named case.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "apart.h"
#include "seeds.h"
#include "ticket_cases.h"

namespace holdfast::simulation::ticket {

namespace {

void print_head() {
  std::printf("%-58s N  C  before after  rate longest  gap least/most fair pkts/g lost\n",
              "ticket simulation");
}

void print(const Case& c, const Figures& f) {
  std::printf("%-58s %zu %2zu %6.1f %6.1f %5.2f %6.2f %5.2f %8.2f %6.2f %6.1f %4llu%s\n", c.name.c_str(),
              c.servers, c.clients, f.before, f.after, f.rate, f.longest_wait_s, f.longest_gap_s,
              f.least_to_most, f.fair_share_s, f.packets, static_cast<unsigned long long>(f.lost),
              f.complaint(c).empty() && f.faults.empty() ? "" : " <-");
  std::fflush(stdout);
}

Figures play(const Case& c, uint64_t seed, bool story = false) {
  std::function<void(const std::string&)> tell;
  if (story) tell = [](const std::string& line) { std::puts(line.c_str()); };
  return World(c, seed, tell).run();
}

void check(const Case& c, uint64_t seed) {
  const Figures f = play(c, seed, std::getenv("HOLDFAST_STORY") != nullptr);
  print(c, f);
  CHECK_MESSAGE(f.faults.empty(), c.name << ": " << (f.faults.empty() ? "" : f.faults.front()));
  CHECK_MESSAGE(f.complaint(c).empty(), c.name << ": " << f.complaint(c));
}

void check_all(size_t servers, size_t clients, Locks locks) {
  const char* only = std::getenv("HOLDFAST_CASE");
  print_head();
  for (Case c : named_cases()) {
    if (only != nullptr && c.name.find(only) == std::string::npos) continue;
    c.servers = servers;
    c.clients = clients;
    c.locks = locks;
    check(c, from_environment("HOLDFAST_SEED", 1));
  }
}

// Random worlds; prints those that break a promise, and how well the others kept theirs.
void check_random(const char* what, Case (*make)(uint64_t)) {
  const uint64_t first = from_environment("HOLDFAST_SEED", 1);
  const uint64_t runs = from_environment("HOLDFAST_CUTS", 3);
  uint64_t grants = 0;
  uint64_t lost = 0;
  uint64_t faults = 0;
  uint64_t slow = 0;
  double least_rate = 1e9;
  double longest_s = 0;
  print_head();
  for (uint64_t seed = first; seed < first + runs; ++seed) {
    Case c = make(seed);
    c.name += " " + std::to_string(seed);
    const Figures f = play(c, seed, std::getenv("HOLDFAST_STORY") != nullptr);
    grants += f.grants;
    lost += f.lost;
    faults += f.faults.size();
    least_rate = std::min(least_rate, f.rate);
    longest_s = std::max(longest_s, f.longest_wait_s);
    if (f.faults.empty() && f.complaint(c).empty()) continue;
    print(c, f);
    slow += f.complaint(c).empty() ? 0 : 1;
    std::cout << "  " << (f.faults.empty() ? f.complaint(c) : f.faults.front()) << "\n";
  }
  std::cout << "ticket simulation: " << what << " of the seeds " << first << " to " << first + runs - 1
            << ": " << grants << " grants, " << faults << " faults, " << slow << " too slow, " << lost
            << " holds lost, least rate " << least_rate << ", longest wait " << longest_s << " s\n";
  CHECK(faults == 0);
  CHECK(slow == 0);
}

}  // namespace

TEST_CASE("ticket simulation: exclusive locks on three servers are live in each cut") {
  check_all(3, 6, Locks::kExclusive);
}

TEST_CASE("ticket simulation: exclusive locks on five servers are live in each cut") {
  check_all(5, 12, Locks::kExclusive);
}

TEST_CASE("ticket simulation: readers and writers are live in each cut") {
  check_all(3, 12, Locks::kShared);
}

// They need all servers, so a cut ends their liveness by nature.
TEST_CASE("ticket simulation: counted locks are live while all servers are reached") {
  print_head();
  for (const char* name : {"none", "half of the clients vanish", "a client vanishes every 2 s",
                           "clocks wrong by hours", "each group is 100 ms from another server"}) {
    Case c = case_named(name);
    c.locks = Locks::kCounted;
    check(c, from_environment("HOLDFAST_SEED", 1));
  }
}

TEST_CASE("ticket simulation: random cuts in which each client reaches a majority") {
  check_random("cuts", random_cut);
}

TEST_CASE("ticket simulation: everything at once is safe") { check_random("troubles", random_trouble); }

}  // namespace holdfast::simulation::ticket
