// When the loop polls without a sleep, on a clock that the tests move.
#include "io/net/busy_poll.h"

#include <doctest/doctest.h>

namespace holdfast {
namespace {

constexpr BusyPoll::Setting kAuto{.automatic = true};
constexpr Cores kTwoCores{.online = 2, .usable = 2, .runnable_threads = 2};
constexpr uint64_t kUs = 1000;
constexpr uint64_t kShort = 20 * kUs;   // a wait that a spin would have ended
constexpr uint64_t kLong = 5000 * kUs;  // a wait that no spin would have ended

struct Loop {
  BusyPoll poll;
  Cores cores = kTwoCores;
  BusyPoll::Setting setting = kAuto;
  uint64_t others = 0;  // reads from them since the last reply
  uint64_t now_ns = 1'000'000'000;

  bool begin_wait() {
    if (poll.needs_cores(now_ns, setting)) poll.set_cores(now_ns, cores);
    poll.note_read(others);
    return poll.begin_wait(now_ns, setting);
  }

  // A wait that ends after so long. Returns whether it began with a spin.
  bool wait(uint64_t ns) {
    const bool spins = begin_wait();
    for (uint64_t passed = 0; spins && passed < ns; passed += kUs) {
      if (!poll.goes_on(now_ns + passed, 0)) break;
    }
    now_ns += ns;
    poll.end_wait(now_ns);
    return spins;
  }

  // Returns whether the wait after the last one would begin with a spin.
  bool waits(unsigned times, uint64_t ns) {
    for (unsigned i = 0; i < times; ++i) wait(ns);
    return begin_wait();
  }
};

}  // namespace

TEST_CASE("busy poll: it spins after eight short waits in a row, not after seven") {
  Loop seven;
  CHECK(!seven.waits(BusyPoll::kFewestShort - 1, kShort));
  Loop eight;
  CHECK(eight.waits(BusyPoll::kFewestShort, kShort));
  Loop broken;
  broken.waits(BusyPoll::kFewestShort - 1, kShort);
  broken.wait(kLong);
  CHECK(!broken.waits(BusyPoll::kFewestShort - 1, kShort));
}

TEST_CASE("busy poll: a sleep is short up to its limit") {
  CHECK(Loop().waits(BusyPoll::kFewestShort, BusyPoll::kShortWaitNs));
  CHECK(!Loop().waits(BusyPoll::kFewestShort, BusyPoll::kShortWaitNs + 1));
}

TEST_CASE("busy poll: a spin ends at its limit, and the next waits sleep") {
  Loop loop;
  REQUIRE(loop.waits(BusyPoll::kFewestShort, kShort));
  CHECK(loop.poll.goes_on(loop.now_ns + BusyPoll::kSpinNs - 1, 0));
  CHECK(!loop.poll.goes_on(loop.now_ns + BusyPoll::kSpinNs, 0));
  CHECK(loop.poll.counts().spins == 1);
  CHECK(loop.poll.counts().hits == 0);
  CHECK(loop.poll.counts().spun_ns == BusyPoll::kSpinNs);
  loop.poll.end_wait(loop.now_ns += 2 * BusyPoll::kSpinNs);
  CHECK(!loop.begin_wait());
}

TEST_CASE("busy poll: an event that ends a spin is a hit, and the next wait spins, too") {
  Loop loop;
  loop.waits(BusyPoll::kFewestShort, kShort);
  CHECK(loop.wait(kShort));
  CHECK(loop.wait(kShort));
  CHECK(loop.poll.counts().spins == 2);
  CHECK(loop.poll.counts().hits == 2);
  CHECK(loop.poll.counts().spun_ns == 2 * kShort);
}

TEST_CASE("busy poll: an idle server spins at most once") {
  Loop loop;
  loop.waits(1000, kShort);
  for (int i = 0; i < 1000; ++i) loop.wait(kLong);
  CHECK(loop.poll.counts().spins - loop.poll.counts().hits == 1);
}

// The sleep of 80 us has the wake-up in it, so it looks as if a spin could find the event.
TEST_CASE("busy poll: spins that find nothing take little more than 1 % of the time") {
  Loop loop;
  const uint64_t began_ns = loop.now_ns;
  for (int i = 0; i < 100'000; ++i) loop.wait(BusyPoll::kSpinNs + 30 * kUs);
  const uint64_t allowed = (loop.now_ns - began_ns) / BusyPoll::kDebtShare;
  CHECK(loop.poll.counts().hits == 0);
  CHECK(loop.poll.counts().spun_ns >= allowed / 2);
  CHECK(loop.poll.counts().spun_ns <= allowed + BusyPoll::kMostDebtNs + BusyPoll::kSpinNs);
}

TEST_CASE("busy poll: hits pay for the spins between them that find nothing") {
  Loop loop;
  unsigned spins = 0;
  for (int i = 0; i < 10'000; ++i) {
    for (int n = 0; n < 50; ++n) spins += loop.wait(kShort) ? 1 : 0;
    loop.wait(kLong);
  }
  CHECK(spins >= 10'000 * (50 - BusyPoll::kFewestShort));
}

TEST_CASE("busy poll: where other threads ran on the core, it sleeps for a hundred times as long") {
  constexpr uint64_t kOthers = 3'000 * kUs;
  Loop loop;
  REQUIRE(loop.waits(BusyPoll::kFewestShort, kShort));
  loop.now_ns += kOthers;
  CHECK(!loop.poll.goes_on(loop.now_ns, kOthers));
  CHECK(loop.poll.counts().preemptions == 1);
  loop.poll.end_wait(loop.now_ns);
  const uint64_t again_ns = loop.now_ns + kOthers * BusyPoll::kDebtShare;
  while (loop.now_ns < again_ns) REQUIRE(!loop.wait(kShort));
}

TEST_CASE("busy poll: it needs two cores, and no thread that waits for a core") {
  const auto spins = [](Cores cores) {
    Loop loop;
    loop.cores = cores;
    return loop.waits(2 * BusyPoll::kFewestShort, kShort);
  };
  CHECK(!spins({.online = 8, .usable = 0, .runnable_threads = 1}));  // a quota below one core
  CHECK(!spins({.online = 8, .usable = 1, .runnable_threads = 1}));
  CHECK(spins({.online = 8, .usable = 2, .runnable_threads = 1}));
  CHECK(spins({.online = 2, .usable = 2, .runnable_threads = 2}));
  CHECK(!spins({.online = 2, .usable = 2, .runnable_threads = 3}));
}

TEST_CASE("busy poll: the facts about the cores are read when a spin needs them, and when they are old") {
  Loop loop;
  CHECK(!loop.poll.needs_cores(loop.now_ns, kAuto));
  REQUIRE(loop.waits(BusyPoll::kFewestShort, kShort));
  const uint64_t read_ns = loop.now_ns;
  CHECK(!loop.poll.needs_cores(read_ns + BusyPoll::kCoresEveryNs - 1, kAuto));
  CHECK(loop.poll.needs_cores(read_ns + BusyPoll::kCoresEveryNs, kAuto));
  CHECK(!loop.poll.needs_cores(read_ns + BusyPoll::kCoresEveryNs, {}));
  loop.cores.runnable_threads = 3;
  loop.now_ns += BusyPoll::kCoresEveryNs;
  CHECK(!loop.begin_wait());
}

TEST_CASE("busy poll: where many clients are busy at once, the loop sleeps") {
  Loop few;
  few.others = BusyPoll::kMostOthers;
  CHECK(few.waits(1000, kShort));
  Loop many;
  many.others = BusyPoll::kMostOthers + 1;
  CHECK(!many.waits(1000, kShort));
  many.others = 0;
  CHECK(many.waits(100, kShort));
}

// Such as clients whose grants and releases use different connections.
TEST_CASE("busy poll: clients that come back after a long time do not end the spins") {
  Loop loop;
  REQUIRE(loop.waits(1000, kShort));
  for (int i = 0; i < 1000; ++i) {
    loop.others = i % 2 == 0 ? UINT64_MAX : 1;
    CHECK(loop.wait(kShort));
  }
}

TEST_CASE("busy poll: a fixed spin is always, and as long as it is set; without one there is none") {
  Loop loop;
  loop.setting = {.fixed_ns = 500 * kUs};
  loop.cores = {.online = 1, .usable = 1, .runnable_threads = 9};
  CHECK(loop.begin_wait());
  CHECK(loop.poll.goes_on(loop.now_ns + 500 * kUs - 1, kUs));
  CHECK(!loop.poll.goes_on(loop.now_ns + 500 * kUs, 0));
  loop.poll.end_wait(loop.now_ns += kLong);
  CHECK(loop.begin_wait());
  loop.setting = {};
  CHECK(!loop.waits(100, kShort));
}

}  // namespace holdfast
