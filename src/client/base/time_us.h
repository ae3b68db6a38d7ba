// Times in microseconds on the client's monotonic clock, for what happens within a few milliseconds. That
// clock has nothing to do with a server's clock, which counts whole milliseconds (TimeMs).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "core/base/types.h"

namespace holdfast::client {

struct DurationUs {
  int64_t count = 0;
  constexpr auto operator<=>(const DurationUs&) const = default;
};

struct TimeUs {
  int64_t count = 0;
  constexpr auto operator<=>(const TimeUs&) const = default;
};

// Never, and before everything. Far from the limits of the type, so that a span can be added to both.
inline constexpr TimeUs kNeverUs{std::numeric_limits<int64_t>::max() / 4};
inline constexpr TimeUs kLongAgoUs{-kNeverUs.count};
inline constexpr DurationUs kForeverUs{kNeverUs.count};

// kNeverUs stays kNeverUs, whatever is added.
constexpr TimeUs operator+(TimeUs t, DurationUs d) {
  return t >= kNeverUs || d >= kForeverUs ? kNeverUs : TimeUs{t.count + d.count};
}
constexpr TimeUs operator-(TimeUs t, DurationUs d) { return {t.count - d.count}; }
constexpr DurationUs operator-(TimeUs a, TimeUs b) { return {a.count - b.count}; }
constexpr DurationUs operator+(DurationUs a, DurationUs b) { return {a.count + b.count}; }
constexpr DurationUs operator*(DurationUs d, int64_t n) { return {d.count * n}; }
constexpr DurationUs operator/(DurationUs d, int64_t n) { return {d.count / n}; }

constexpr DurationUs us_of(DurationMs d) {
  return d.count >= kForeverUs.count / 1000 ? kForeverUs : DurationUs{d.count * 1000};
}
// The beginning of the millisecond.
constexpr TimeUs us_of(TimeMs t) {
  return t.count >= kNeverUs.count / 1000 ? kNeverUs : TimeUs{t.count * 1000};
}
// Rounded up: a server's time is never shorter than asked.
constexpr DurationMs ms_of(DurationUs d) { return {(d.count + 999) / 1000}; }

constexpr bool is_due(TimeUs deadline, TimeUs now) { return now >= deadline; }

}  // namespace holdfast::client
