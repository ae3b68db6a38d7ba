// CL.THROTTLE, as of the module redis-cell: a rate limiter by the generic cell rate algorithm (GCRA). The
// state of a limiter is a string: the nanosecond since 1970 at which the limiter is full again, in decimal
// digits, as redis-cell stores it. The key expires at that time.
#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/handlers/string_access.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr int64_t kNsOfSecond = 1000000000;
constexpr int64_t kNsOfMs = 1000000;
constexpr int64_t kNsOfUs = 1000;
// Times of a limiter are at most 100 years, so that a sum of them and the wall clock fits 64 bits.
constexpr int64_t kLongestNs = int64_t{100} * 365 * 24 * 3600 * kNsOfSecond;
constexpr int64_t kMostUnits = std::numeric_limits<int32_t>::max();

struct Limiter {
  int64_t limit = 0;         // units that a full limiter allows at once
  int64_t interval_ns = 0;   // time in which one unit comes back
  int64_t tolerance_ns = 0;  // time in which all units come back
};

struct Outcome {
  bool limited = false;
  int64_t left_ns = 0;    // time until the limiter is full
  int64_t retry_ns = -1;  // time until the request would be allowed; -1: it never will, or it is now
};

std::optional<Limiter> read_limiter(Request& r) {
  const auto burst = read_number(r, 2, "max_burst", 0, kMostUnits);
  const auto count = burst ? read_number(r, 3, "count", 1, kMostUnits) : std::nullopt;
  const auto period = count ? read_number(r, 4, "period", 1, kMostUnits) : std::nullopt;
  if (!period) return std::nullopt;
  Limiter l;
  l.limit = *burst + 1;
  // As redis-cell divides, so that both give the same replies.
  l.interval_ns =
      static_cast<int64_t>(static_cast<double>(*period * kNsOfSecond) / static_cast<double>(*count));
  if (l.interval_ns < kNsOfUs) {
    return r.reply.error("ERR count must be at most 1000000 for each second of the period"), std::nullopt;
  }
  if (__builtin_mul_overflow(l.interval_ns, l.limit, &l.tolerance_ns) || l.tolerance_ns > kLongestNs) {
    return r.reply.error("ERR max_burst must be smaller: it takes more than 100 years to come back"),
           std::nullopt;
  }
  return l;
}

// The time until the limiter is full. The wall clock may have been set since the state was written, but the
// engine's clock was not: so the wall clock only refines the key's expiry, within the precision of both.
int64_t time_left_ns(const Request& r, const StringAt& s, int64_t full_at_ns) {
  int64_t left_ns = std::max<int64_t>(full_at_ns, 0) - r.ctx.now.wall_us * kNsOfUs;
  if (deadline_of(*s.found) != kNever) {
    const int64_t expiry_ms = std::min((deadline_of(*s.found) - r.now()).count, kLongestNs / kNsOfMs);
    left_ns = std::clamp(left_ns, (expiry_ms - 2) * kNsOfMs, expiry_ms * kNsOfMs);
  }
  return std::clamp<int64_t>(left_ns, 0, kLongestNs);
}

Outcome try_take(const Limiter& l, int64_t left_ns, int64_t quantity) {
  int64_t increment_ns = 0;
  if (__builtin_mul_overflow(l.interval_ns, quantity, &increment_ns) || increment_ns > l.tolerance_ns) {
    return {true, left_ns, -1};
  }
  const int64_t over_ns = left_ns + increment_ns - l.tolerance_ns;
  if (over_ns > 0) return {true, left_ns, over_ns};
  return {false, left_ns + increment_ns, -1};
}

void store(Request& r, StringAt& s, int64_t left_ns) {
  char digits[24];
  const int64_t full_at_ns = r.ctx.now.wall_us * kNsOfUs + left_ns;
  const char* end = std::to_chars(digits, digits + sizeof digits, full_at_ns).ptr;
  const DurationMs ttl{(left_ns + kNsOfMs - 1) / kNsOfMs};
  set_string(r, s.key, s.found, {digits, static_cast<size_t>(end - digits)}, r.now() + ttl);
}

// A time with a part of a second counts as the next second, or a client would retry too early. Parts of a
// millisecond do not count, as in redis-cell.
int64_t seconds(int64_t ns) {
  if (ns < 0) return -1;
  return ns / kNsOfSecond + (ns % kNsOfSecond >= kNsOfMs ? 1 : 0);
}

// As redis-cell computes it: in whole microseconds.
int64_t remaining(const Limiter& l, int64_t left_ns) {
  const int64_t next_ns = l.tolerance_ns - left_ns;
  if (next_ns <= -l.interval_ns) return 0;
  const int64_t next_us = next_ns / kNsOfUs;
  const int64_t interval_us = l.interval_ns / kNsOfUs;
  return static_cast<int64_t>(static_cast<double>(next_us) / static_cast<double>(interval_us));
}

}  // namespace

void cmd_cl_throttle(Request& r) {
  if (r.argc() > 6) return reply_wrong_arity(r);
  const auto limiter = read_limiter(r);
  if (!limiter) return;
  const auto quantity = r.argc() == 6 ? read_number(r, 5, "quantity", 0, kMostUnits) : 1;
  if (!quantity) return;
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  const auto full_at_ns = s.live ? parse_int(s.value) : std::optional<int64_t>(0);
  if (!full_at_ns) return reply_not_an_integer(r);
  const int64_t left_ns = s.live ? time_left_ns(r, s, *full_at_ns) : 0;
  const Outcome outcome = try_take(*limiter, left_ns, *quantity);
  if (!outcome.limited && *quantity > 0) store(r, s, outcome.left_ns);
  r.reply.array(5);
  r.reply.integer(outcome.limited ? 1 : 0);
  r.reply.integer(limiter->limit);
  r.reply.integer(remaining(*limiter, outcome.left_ns));
  r.reply.integer(seconds(outcome.retry_ns));
  r.reply.integer(seconds(outcome.left_ns));
}

}  // namespace holdfast
