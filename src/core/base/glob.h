// Glob patterns as KEYS, SCAN MATCH and PSUBSCRIBE take them. Pure; binary safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// Whether all of `text` matches: `*` any run of bytes, `?` one byte, `[abc]` `[a-c]` `[^a]` one byte of
// (not of) a class, `\x` the byte x. Matches exactly like Redis's stringmatchlen, with its oddities. A
// class that is not closed extends to the end of the pattern, and `]` first in a class closes it. A range
// compares signed bytes, and an empty text does not match `**`. One difference: "*" also matches the empty
// text, as in KEYS and SCAN.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

// The step limit of a match: some patterns need as many steps as pattern times text has bytes. A step is
// one byte of the pattern, or 32 bytes of a search for plain bytes. A match may take `allowed` steps, plus
// `free` steps for each of the pattern's first 64 bytes and the text's first 1,024. A text that needs more
// does not match. `taken` sums the steps beyond the free ones over all matches; usual patterns take none.
struct GlobSteps {
  uint64_t allowed = uint64_t{1} << 15;
  uint64_t taken = 0;
  uint64_t free = 8;
};
inline constexpr uint64_t kNameSteps = 4096;  // `allowed` for the short names of commands and settings
bool glob_match(std::string_view pattern, std::string_view text, GlobSteps& steps,
                bool ignore_case = false);

}  // namespace holdfast
