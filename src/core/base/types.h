// The strong types of the engine: times, tokens, connection ids, modes. Values only, with no behaviour but
// arithmetic. Different types prevent that two arguments are swapped by mistake.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace holdfast {

// A span of milliseconds. Never negative if it comes from a checked argument.
struct DurationMs {
  int64_t count = 0;
  constexpr auto operator<=>(const DurationMs&) const = default;
};

// A point on the engine's own clock: milliseconds since an arbitrary start, monotonic; it also counts while
// the machine is suspended. The shell reads it once per loop iteration; the core never reads it.
struct TimeMs {
  int64_t count = 0;
  constexpr auto operator<=>(const TimeMs&) const = default;
};

constexpr TimeMs operator+(TimeMs t, DurationMs d) { return {t.count + d.count}; }
constexpr TimeMs operator-(TimeMs t, DurationMs d) { return {t.count - d.count}; }
constexpr DurationMs operator-(TimeMs a, TimeMs b) { return {a.count - b.count}; }

// "Never": an entry keeps its deadline in 54 bits, and this is the largest value. A TTL has at most 53 bits
// and the clock at most 40, so a real deadline never reaches it.
inline constexpr TimeMs kNever{(int64_t{1} << 54) - 1};
inline constexpr int64_t kMaxTtlMs = (int64_t{1} << 53) - 1;

// The only definition of when a deadline is due.
constexpr bool is_due(TimeMs deadline, TimeMs now) { return now >= deadline; }

// The time that one request sees: the engine's clock, and the wall clock for times that clients give as
// wall time (EXPIREAT, TIME, token hints). Both stand still while a request, script or transaction runs.
struct Now {
  TimeMs mono;
  int64_t wall_us = 0;  // microseconds since 1970
  // The point on the engine's clock that corresponds to a wall-clock deadline.
  constexpr TimeMs from_wall_ms(int64_t wall_ms) const { return {wall_ms - wall_us / 1000 + mono.count}; }
  constexpr int64_t to_wall_ms(TimeMs t) const { return t.count - mono.count + wall_us / 1000; }
  // How far the wall clock is ahead of the engine's clock; and the same moment with another such
  // difference.
  constexpr int64_t ahead_ms() const { return wall_us / 1000 - mono.count; }
  constexpr Now with_ahead_ms(int64_t ms) const { return {mono, (mono.count + ms) * 1000}; }
};

// A fencing token: grows with every grant of a key, and never decreases. 0 means "none assigned yet".
struct Token {
  uint64_t value = 0;
  constexpr auto operator<=>(const Token&) const = default;
};
inline constexpr uint64_t kMaxToken = (uint64_t{1} << 53) - 1;  // a double holds it exactly

// The last token of a key whose tokens are far ahead of the clock: see tokens.h.
struct AheadToken {
  std::string key;
  uint64_t token = 0;
  bool operator==(const AheadToken&) const = default;
};

// A connection. `serial` is the number in CLIENT ID and is never used twice. `slot` is the index in the
// engine's table, and is used again after the connection is closed.
struct ConnId {
  uint64_t serial = 0;  // 0: no connection
  uint32_t slot = 0;
  constexpr bool operator==(const ConnId&) const = default;
  constexpr explicit operator bool() const { return serial != 0; }
};

// How many holders, itself included, a hold admits: exclusive 1, LIMIT n = n, SHARED unlimited.
struct Capacity {
  uint32_t count = 1;
  constexpr auto operator<=>(const Capacity&) const = default;
};
inline constexpr Capacity kExclusive{1};
inline constexpr Capacity kShared{std::numeric_limits<uint32_t>::max()};

inline constexpr int kDatabases = 16;
using DbIndex = uint8_t;

}  // namespace holdfast
