// Expiry times in commands: seconds or milliseconds, relative to now or since 1970.
#pragma once

#include <optional>
#include <string_view>

#include "core/state/request.h"

namespace holdfast {

// The four words for an expiry, with their unit in milliseconds. `absolute`: since 1970.
struct ExpiryWord {
  std::string_view word;
  int64_t unit_ms;
  bool absolute;
};
inline constexpr ExpiryWord kExpiryWords[] = {
    {"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};

const ExpiryWord* find_expiry_word(std::string_view word);

// Converts `ms` (relative to now or since 1970) to a time on the engine's clock. Limits it to the range
// that an entry can store: at most kMaxTtlMs from now.
TimeMs deadline_at(const Request& r, int64_t ms, bool absolute);

// Reads a time that must be larger than 0. If it is invalid, writes an error that names the command and
// returns nullopt.
std::optional<TimeMs> read_expiry(Request& r, const ExpiryWord& word, std::string_view text);
void reply_invalid_expiry(Request& r);

}  // namespace holdfast
