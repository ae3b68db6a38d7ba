// Glob patterns as KEYS, SCAN MATCH and PSUBSCRIBE take them. Pure; binary safe.
#pragma once

#include <string_view>

namespace holdfast {

// Whether all of `text` matches: `*` any run of bytes, `?` one byte, `[abc]` `[a-c]` `[^a]` one byte of
// (not of) a class, `\x` the byte x. Matches just what Redis's stringmatchlen matches, its oddities
// included: a class that is not closed goes to the end of the pattern, `]` first in a class closes it, a
// range compares signed bytes, and an empty text matches no `**`. One difference: "*" matches the empty
// text too, as KEYS and SCAN take it. Costs at most pattern times text, whatever the pattern.
bool glob_match(std::string_view pattern, std::string_view text, bool ignore_case = false);

}  // namespace holdfast
