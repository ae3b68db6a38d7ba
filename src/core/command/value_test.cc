// Compares values and digests.
#include "core/command/value_test.h"

#include <array>

#include "core/base/hash.h"
#include "core/base/parse.h"

namespace holdfast {

ValueTest condition_word(std::string_view word) {
  if (word.size() < 4 || ascii_lower(word[0]) != 'i') return ValueTest::kNone;
  if (equals_ignore_case(word, "IFEQ")) return ValueTest::kEqual;
  if (equals_ignore_case(word, "IFNE")) return ValueTest::kNotEqual;
  if (equals_ignore_case(word, "IFDEQ")) return ValueTest::kDigestEqual;
  if (equals_ignore_case(word, "IFDNE")) return ValueTest::kDigestNotEqual;
  return ValueTest::kNone;
}

bool passes(ValueTest test, std::string_view operand, std::string_view value) {
  switch (test) {
    case ValueTest::kEqual:
      return value == operand;
    case ValueTest::kNotEqual:
      return value != operand;
    case ValueTest::kDigestEqual:
      return equals_ignore_case(digest_of(value), operand);
    case ValueTest::kDigestNotEqual:
      return !equals_ignore_case(digest_of(value), operand);
    case ValueTest::kNone:
      break;
  }
  return true;
}

std::string digest_of(std::string_view value) {
  const uint64_t hash = hash_bytes(value, 0);
  std::array<uint8_t, sizeof hash> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(hash >> (56 - 8 * i));
  std::string digits;
  append_hex(digits, bytes);
  return digits;
}

}  // namespace holdfast
