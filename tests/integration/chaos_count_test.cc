// Many processes increment a counter under one quorum lock. Meanwhile servers crash, stop and restart;
// messages are lost, delayed and cut; clocks are wrong; and holders stop for longer than their TTL.
// HOLDFAST_CHAOS_INCREMENTS is the number of increments. HOLDFAST_CHAOS_SEED repeats the random choices of
// a run, but not their timing.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "chaos_client.h"
#include "chaos_record.h"
#include "chaos_servers.h"
#include "crowd.h"
#include "holdfast/client.h"
#include "skewed_clock.h"

namespace holdfast::integration {

namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr size_t kMayBeDown = 2;  // with these down, the others are a quorum
constexpr size_t kClients = 50;

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::stoull(value) : otherwise;
}

// All differ by less than max-token-lead. Otherwise no client could raise the tokens of a server far
// behind.
std::vector<microseconds> clocks_of_servers() { return {0h, 6h, -6h, 0h, -1h}; }

// Takes servers down and restarts them. At most two are down, except in outages, which it records.
class Faults {
 public:
  Faults(ChaosServers& servers, uint64_t seed)
      : servers_(servers), dice_(seed), up_at_(servers.size()), next_outage_(later(3000, 6000)) {}

  void step() {
    const Clock::time_point now = Clock::now();
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (!servers_.is_up(i) && up_at_[i] <= now) servers_.revive(i);
    }
    if (now >= next_outage_) return outage();
    if (down() < kMayBeDown && now >= next_fault_) {
      take_down();
      next_fault_ = later(300, 3000);
    }
  }

  const std::vector<Span>& outages() const { return outages_; }
  uint64_t kills() const { return kills_; }
  uint64_t stops() const { return stops_; }

 private:
  Clock::time_point later(int64_t least_ms, int64_t most_ms) {
    return Clock::now() + milliseconds(dice_.between(least_ms, most_ms));
  }

  size_t down() const {
    size_t n = 0;
    for (size_t i = 0; i < servers_.size(); ++i) n += servers_.is_up(i) ? 0 : 1;
    return n;
  }

  void take_down() {
    size_t which = dice_.below(servers_.size());
    while (!servers_.is_up(which)) which = (which + 1) % servers_.size();
    if (dice_.one_in(2)) {
      servers_.kill(which);
      ++kills_;
    } else {
      servers_.stop(which);
      ++stops_;
    }
    up_at_[which] = later(100, 1200);
  }

  // Three servers are down: no client may acquire the lock.
  void outage() {
    while (down() <= kMayBeDown) take_down();
    const int64_t from_ns = true_now_ns();
    holdfast::Client client(servers_.place("timeout=200"));
    // Each outage has its own key: a server may still hold an earlier one, if it did not get the release.
    const std::string key = "outage " + std::to_string(outages_.size());
    CHECK(client.try_lock(key).outcome == holdfast::Outcome::kUnreachable);
    std::this_thread::sleep_for(milliseconds(dice_.between(0, 500)));
    outages_.push_back({from_ns, true_now_ns()});
    next_outage_ = later(5000, 10000);
  }

  ChaosServers& servers_;
  simulation::Dice dice_;
  std::vector<Clock::time_point> up_at_;
  Clock::time_point next_fault_ = Clock::now();
  Clock::time_point next_outage_;
  std::vector<Span> outages_;
  uint64_t kills_ = 0;
  uint64_t stops_ = 0;
};

// The processes that count. They are stopped and resumed.
class Crew {
 public:
  Crew(const std::string& place, const TempFolder& folder, uint64_t target, uint64_t seed) : dice_(seed) {
    for (size_t i = 0; i < kClients; ++i) {
      Counting part{place, folder.path(), target, dice_.below(UINT32_MAX), "", true};
      part.clock = wrong_clock(i, part.clock_is_right);
      members_.push_back(std::make_unique<Process>(counting_program(), launch_of(part)));
    }
  }

  // Alternately stops one process, and resumes all stopped processes.
  void step() {
    if (Clock::now() < next_) return;
    if (wakes_ = !wakes_; wakes_) {
      wake();
    } else {
      dice_.pick(members_)->signal(SIGSTOP);
      ++stops_;
    }
    next_ = Clock::now() + milliseconds(dice_.between(200, 1500));
  }

  // Only stopped processes: at the end of a process, LeakSanitizer hangs after a SIGCONT that it did not
  // send.
  void wake() const {
    for (const auto& member : members_) {
      if (member->state() == 'T') member->signal(SIGCONT);
    }
  }

  uint64_t stops() const { return stops_; }

  // Waits for the end of all processes. Some of them may stop themselves before.
  Tally wait() {
    until("the end of the clients", [&] {
      wake();
      std::this_thread::sleep_for(20ms);
      return std::all_of(members_.begin(), members_.end(), [](const auto& m) { return m->state() == 'Z'; });
    });
    Tally sum;
    for (const auto& member : members_) {
      check_end(*member);
      for (const auto& [name, count] : tally_of(member->out().whole())) sum[name] += count;
    }
    return sum;
  }

 private:
  // LeakSanitizer stops all threads during its check, while the test stops and resumes the process. Its
  // report is printed, but does not prove a leak.
  static void check_end(Process& member) {
    const int status = member.wait();
    const std::string said = member.err().whole();
    if (said.find("LeakSanitizer") == std::string::npos) {
      CHECK_MESSAGE(status == 0, said);
    } else {
      MESSAGE(said);
    }
  }

  // Days behind, hours ahead, or so far ahead that the servers reject its tokens. In every tenth process
  // the clock is 20 % slow, and in another tenth 20 % fast. Slow processes rely on a lock for too long, and
  // only the tokens protect the counter from them. In other processes the clock rate is within the allowed
  // drift.
  std::string wrong_clock(size_t number, bool& is_right) {
    const int64_t hours = dice_.one_in(5) ? dice_.between(48, 72) : dice_.between(-72, 10);
    is_right = number % 10 != 0;
    int64_t rate_ppm = dice_.between(-4000, 4000);
    if (number % 10 == 0) rate_ppm = -200000;
    if (number % 10 == 1) rate_ppm = 200000;
    return clock_setting(std::chrono::hours(hours), rate_ppm);
  }

  simulation::Dice dice_;
  std::vector<std::unique_ptr<Process>> members_;
  Clock::time_point next_ = Clock::now();
  bool wakes_ = true;
  uint64_t stops_ = 0;
};

void check_none(const std::vector<std::string>& faults) {
  CHECK(faults.empty());
  for (size_t i = 0; i < faults.size() && i < 10; ++i) FAIL_CHECK(faults[i]);
}

std::string text_of(const ProxyCounts& counts) {
  std::ostringstream text;
  text << counts.swallowed << " replies swallowed, " << counts.cut_requests << " requests and "
       << counts.cut_replies << " replies cut, " << counts.delayed << " pieces delayed, "
       << counts.turned_away << " connections rejected";
  return text.str();
}

}  // namespace

TEST_CASE("chaos: 50 processes count while servers crash and messages are lost, and no increment is lost") {
  const uint64_t target = number_from_environment("HOLDFAST_CHAOS_INCREMENTS", 100);
  const uint64_t seed = number_from_environment("HOLDFAST_CHAOS_SEED", std::random_device()());
  std::cout << "chaos: seed " << seed << std::endl;
  allow_open_files(8192);
  const Intensity intensity{2000, 2000, 20, 200, 20};
  const TempFolder folder;
  ChaosServers servers(clocks_of_servers(), seed, intensity);
  Storage storage(folder.path(), target);
  Faults faults(servers, seed + 1);
  Crew crew(servers.place("timeout=300&min-wait=200&max-wait=1000"), folder, target, seed + 2);
  const Clock::time_point begun = Clock::now();
  uint64_t last = 0;
  Clock::time_point moved = begun;
  while (last < target) {
    faults.step();
    crew.step();
    std::this_thread::sleep_for(10ms);
    if (const uint64_t value = storage.value(); value > last) {
      if (value / 100 > last / 100)
        std::cout << "chaos: "
                  << std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun).count()
                  << " s: " << value << " of " << target << std::endl;
      last = value;
      moved = Clock::now();
    }
    REQUIRE_MESSAGE(Clock::now() - moved < 2 * kPatience,
                    "the counter makes no progress; its value is " << last);
  }
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun);
  Tally tally = crew.wait();
  const std::vector<Held> holds = Storage::holds(folder.path());
  std::cout << "chaos: " << last << " increments by " << kClients << " processes in " << took.count()
            << " s: " << tally["attempts"] << " lock attempts, " << tally["ok"] << " acquired, "
            << tally["stood still"] << " holders stopped, " << tally["stale writes"] << " stale writes and "
            << tally["stale reads"] << " stale reads rejected; servers: " << faults.kills() << " killed, "
            << faults.stops() << " stopped, " << faults.outages().size() << " times three at once; "
            << crew.stops() << " clients stopped; " << text_of(servers.proxy().counts()) << std::endl;
  CHECK(tally["written"] == target);
  CHECK(storage.value() == target);
  check_none(faults_of_writes(Storage::writes(folder.path()), storage.value()));
  check_none(faults_of_holds(holds, faults.outages()));
}

}  // namespace holdfast::integration
