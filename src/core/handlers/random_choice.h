// The choice of random elements of a set or hash, shared by SPOP, SRANDMEMBER, ZRANDMEMBER and HRANDFIELD.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/parse.h"
#include "core/codec/reply.h"
#include "core/handlers/random_numbers.h"
#include "core/state/request.h"

namespace holdfast {

// Reads the number of elements: negative if they may repeat. Writes an error and returns nullopt if it is
// invalid.
inline std::optional<int64_t> read_random_count(Request& r, size_t i) {
  const auto count = parse_int(r.arg(i));
  if (!count) return reply_not_an_integer(r), std::nullopt;
  if (*count >= -LONG_MAX) return count;
  r.reply.error(
      "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
  return std::nullopt;
}

struct RandomTerms {
  std::optional<int64_t> count;  // without it the reply is one element, not an array
  bool with_values = false;
};

// Reads "[count [WORD]]" behind the key: WORD requests the values of fields, or the scores of members.
// Writes an error and returns nullopt if an argument is invalid.
inline std::optional<RandomTerms> read_random_terms(Request& r, std::string_view word) {
  RandomTerms terms;
  if (r.argc() == 2) return terms;
  terms.count = read_random_count(r, 2);
  if (!terms.count) return std::nullopt;
  terms.with_values = r.argc() == 4;
  if (r.argc() > 4 || (terms.with_values && !equals_ignore_case(r.arg(3), word)))
    return reply_syntax_error(r), std::nullopt;
  if (terms.with_values && (*terms.count < -LONG_MAX / 2 || *terms.count > LONG_MAX / 2))
    return r.reply.error("ERR value is out of range"), std::nullopt;
  return terms;
}

// Elements that may repeat can make a reply of any size. Writes an error and returns true if not even the
// smallest ones fit into the output.
inline bool refuse_repetitions(Request& r, uint64_t count) {
  constexpr uint64_t kLeastBytes = 6;  // of the empty text
  if (count <= r.reply.out().limit() / kLeastBytes) return false;
  r.reply.error("ERR value is out of range, the reply would exceed the limit of the output buffer");
  return true;
}

// A Source has `size()`, `for_each(f)` with f(element), and `pick(random)` for a random element.
// `id(element)` is what two elements differ in.

// Chooses `count` of the elements in one pass: each with the probability that leaves enough.
template <class Source>
auto choose_in_order(const Source& source, size_t count, RandomNumbers& random) {
  std::vector<typename Source::Element> chosen;
  size_t left = source.size();
  source.for_each([&](const typename Source::Element& element) {
    if (random.next() % left < count - chosen.size()) chosen.push_back(element);
    --left;
  });
  return chosen;
}

// Chooses `count` different elements, by attempts: for a small part of the source.
template <class Source>
auto choose_by_attempts(const Source& source, size_t count, RandomNumbers& random) {
  std::vector<typename Source::Element> chosen;
  absl::flat_hash_set<const char*> taken;
  while (chosen.size() < count) {
    const auto element = source.pick(random);
    if (taken.insert(Source::id(element)).second) chosen.push_back(element);
  }
  return chosen;
}

// Returns `count` different elements, or all of them.
template <class Source>
std::vector<typename Source::Element> choose(const Source& source, size_t count, RandomNumbers& random) {
  constexpr size_t kFewPart = 16;
  if (count == 0) return {};
  const bool few = count < source.size() / kFewPart;
  return few ? choose_by_attempts(source, count, random)
             : choose_in_order(source, std::min(count, source.size()), random);
}

}  // namespace holdfast
