// The conditions of Redis 8.4 on the present string of a key: IFEQ, IFNE, IFDEQ and IFDNE of SET and DELEX.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

enum class ValueTest : uint8_t { kNone, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };

// Returns the condition that the word names, in any case, or kNone.
ValueTest condition_word(std::string_view word);

inline bool compares_digest(ValueTest test) { return test >= ValueTest::kDigestEqual; }
// Whether a key without a value passes.
inline bool passes_without_value(ValueTest test) {
  return test == ValueTest::kNone || test == ValueTest::kNotEqual || test == ValueTest::kDigestNotEqual;
}
// Whether the value passes. Digests are compared without regard to case, as in Redis.
bool passes(ValueTest test, std::string_view operand, std::string_view value);

// The digest of DIGEST: XXH3 with 64 bits, as hexadecimal digits in lower case.
inline constexpr size_t kDigestDigits = 16;
std::string digest_of(std::string_view value);

}  // namespace holdfast
