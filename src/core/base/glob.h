// Glob patterns as KEYS, SCAN MATCH and PSUBSCRIBE take them. Pure; binary safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// Whether all of `text` matches: `*` any run of bytes, `?` one byte, `[abc]` `[a-c]` `[^a]` one byte of
// (not of) a class, `\x` the byte x. Matches just what Redis's stringmatchlen matches, its oddities
// included: a class that is not closed goes to the end of the pattern, `]` first in a class closes it, a
// range compares signed bytes, and an empty text matches no `**`. One difference: "*" matches the empty
// text too, as KEYS and SCAN take it.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

// How far a match may go: some patterns take as many steps as pattern times text has bytes. A step is a
// byte of the pattern looked at, or 32 bytes searched for plain ones. `allowed` is for one match, beside
// `free` for each of the pattern's first 64 bytes and the text's first 1,024; what would take more matches
// nothing. `taken` counts those beside, of all matches: usual patterns take none.
struct GlobSteps {
  uint64_t allowed = uint64_t{1} << 15;
  uint64_t taken = 0;
  uint64_t free = 8;
};
inline constexpr uint64_t kNameSteps = 4096;  // allowed for the short names of commands and settings
bool glob_match(std::string_view pattern, std::string_view text, GlobSteps& steps,
                bool ignore_case = false);

}  // namespace holdfast
