// Reads expiry times, with the limits of Redis.
#include "core/handlers/expire_words.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/state/request.h"

namespace holdfast {

namespace {
constexpr int64_t kMaxTimeMs = std::numeric_limits<int64_t>::max();
}

const ExpiryWord* find_expiry_word(std::string_view word) {
  for (const ExpiryWord& e : kExpiryWords) {
    if (equals_ignore_case(word, e.word)) return &e;
  }
  return nullptr;
}

TimeMs deadline_at(const Request& r, int64_t ms, bool absolute) {
  const int64_t wall_ms = r.ctx.now.wall_us / 1000;
  if (absolute) ms -= wall_ms;  // no overflow: both are far from the limits of int64
  return r.now() + DurationMs{std::clamp(ms, -kMaxTtlMs, kMaxTtlMs)};
}

void reply_invalid_expiry(Request& r) {
  r.reply.error(std::string("ERR invalid expire time in '").append(r.command.name).append("' command"));
}

std::optional<TimeMs> read_expiry(Request& r, const ExpiryWord& word, std::string_view text) {
  const auto value = parse_int(text);
  if (!value) return reply_not_an_integer(r), std::nullopt;
  const int64_t base_ms = word.absolute ? 0 : r.ctx.now.wall_us / 1000;
  if (*value <= 0 || *value > (kMaxTimeMs - base_ms) / word.unit_ms)
    return reply_invalid_expiry(r), std::nullopt;
  return deadline_at(r, *value * word.unit_ms, word.absolute);
}

}  // namespace holdfast
