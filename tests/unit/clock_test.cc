// The engine's clock, which is aligned with the wall clock.
#include "io/os/clock.h"

#include <doctest/doctest.h>

namespace holdfast {
namespace {

constexpr int64_t kYear2026Us = 1'790'000'000'000'000;

}  // namespace

TEST_CASE("clock: a deadline in milliseconds of the wall clock has the exact TTL at each moment") {
  for (int64_t phase_us = 0; phase_us < 1000; phase_us += 37) {
    AlignedClock clock;
    clock.set(5'000'000, kYear2026Us + phase_us);
    for (int64_t passed_us = 0; passed_us < 2500; passed_us += 41) {
      const Now now = clock.at(5'000'000 + passed_us);
      const int64_t client_ms = (kYear2026Us + phase_us + passed_us) / 1000;  // what the client reads
      REQUIRE(now.wall_us == kYear2026Us + phase_us + passed_us);
      REQUIRE(now.from_wall_ms(client_ms + 10'000) - now.mono == DurationMs{10'000});
    }
  }
}

TEST_CASE("clock: a deadline keeps its wall time while the readings vary") {
  AlignedClock clock;
  clock.set(5'000'000, kYear2026Us + 999);
  const TimeMs deadline = clock.at(5'000'000).from_wall_ms(kYear2026Us / 1000 + 700);
  for (int64_t passed_us = 0; passed_us < 9000; passed_us += 333) {
    CHECK_FALSE(clock.seems_set(5'000'000 + passed_us, kYear2026Us + 999 + passed_us + 400));
    CHECK(clock.at(5'000'000 + passed_us).to_wall_ms(deadline) == kYear2026Us / 1000 + 700);
  }
}

TEST_CASE("clock: the wall clock moves at its limit, and the engine's clock never goes back") {
  AlignedClock clock;
  CHECK(clock.seems_set(5'000'000, kYear2026Us));
  clock.set(5'000'000, kYear2026Us + 900);
  for (const int64_t sign : {-1, 1}) {
    CHECK_FALSE(clock.seems_set(5'000'000, kYear2026Us + 900 + sign * AlignedClock::kMovedUs));
    CHECK(clock.seems_set(5'000'000, kYear2026Us + 900 + sign * (AlignedClock::kMovedUs + 1)));
  }
  const Now before = clock.at(5'000'950);
  clock.set(5'000'950, kYear2026Us - 3'600'000'000);  // an hour back, and another phase
  const Now after = clock.at(5'000'950);
  CHECK(after.mono == before.mono);
  CHECK(after.wall_us / 1000 == (kYear2026Us - 3'600'000'000) / 1000);
  CHECK(clock.at(5'002'000).mono - before.mono == DurationMs{1});
}

TEST_CASE("clock: the first millisecond after the boot is not 0") {
  AlignedClock clock;
  clock.set(0, kYear2026Us);
  CHECK(clock.at(0).mono == TimeMs{1});
}

}  // namespace holdfast
