// Expiry times as commands name them: seconds or milliseconds, from now or since 1970.
#pragma once

#include <optional>
#include <string_view>

#include "core/state/request.h"

namespace holdfast {

// The unit and the kind of the four words that give an expiry.
struct ExpiryWord {
  std::string_view word;
  int64_t unit_ms;
  bool absolute;
};
inline constexpr ExpiryWord kExpiryWords[] = {
    {"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};

const ExpiryWord* find_expiry_word(std::string_view word);

// Where `ms` from now or since 1970 lies on the engine's clock, within what an entry can keep: what is
// further away than anybody will wait is as far as can be.
TimeMs deadline_at(const Request& r, int64_t ms, bool absolute);

// Reads a time that must lie after 0. nullopt: an error that names the command has been written.
std::optional<TimeMs> read_expiry(Request& r, const ExpiryWord& word, std::string_view text);
void reply_invalid_expiry(Request& r);

}  // namespace holdfast
