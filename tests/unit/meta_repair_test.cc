// The meta of a folder whose own was damaged or removed.
#include "io/disk/meta_repair.h"

#include <doctest/doctest.h>

#include <string>

namespace holdfast {
namespace {

constexpr uint64_t kClockUs = 1'700'000'000'000'000;
constexpr uint64_t kMinuteUs = 60'000'000;
constexpr uint64_t kDayUs = 24 * 60 * kMinuteUs;
const std::string kOldId(40, 'a');
const std::string kNewId(40, 'b');

Meta rebuilt(const std::string& damaged) { return rebuild_meta(damaged, kClockUs, kNewId); }

std::string with_reserve(uint64_t token) {
  return "version 3\nid " + kOldId + "\ntoken-reserve " + std::to_string(token) + "\ntoken-m";
}

}  // namespace

TEST_CASE("meta repair: a rebuilt meta has a full recovery wait, and names no kernel and no clean stop") {
  const Meta meta = rebuilt("");
  CHECK(meta.id == kNewId);
  CHECK(meta.token_reserve == kClockUs + 10 * kMinuteUs);
  CHECK(meta.boot_id.empty());
  CHECK(!meta.clean);
  CHECK(meta.horizon_ms == kNever.count);
  CHECK(meta.horizon_boot_ms == kNever.count);
  Meta again;
  CHECK(parse_meta(format_meta(meta), again).empty());
  CHECK(again == meta);
}

TEST_CASE("meta repair: the folder's id and the token reserve of the damaged text are kept") {
  CHECK(rebuilt(with_reserve(1)).id == kOldId);
  CHECK(rebuilt("id short\n").id == kNewId);
  CHECK(rebuilt(with_reserve(1)).token_reserve == kClockUs + 10 * kMinuteUs);
  CHECK(rebuilt(with_reserve(kClockUs + 11 * kMinuteUs)).token_reserve == kClockUs + 11 * kMinuteUs);
}

TEST_CASE("meta repair: a reserve more than a day ahead of the clock counts as damaged") {
  CHECK(rebuilt(with_reserve(kClockUs + kDayUs)).token_reserve == kClockUs + kDayUs);
  CHECK(rebuilt(with_reserve(kClockUs + kDayUs + 1)).token_reserve == kClockUs + 10 * kMinuteUs);
  CHECK(rebuilt("token-reserve 17x\n").token_reserve == kClockUs + 10 * kMinuteUs);
}

}  // namespace holdfast
