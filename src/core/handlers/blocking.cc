// The steps of commands that may wait for an element.
#include "core/handlers/blocking.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "core/base/config.h"
#include "core/lock/keys.h"
#include "core/values/pop_waiting.h"

namespace holdfast {

namespace {

// Reads a number of keys, and the keys behind it; at least one more argument follows them. Returns nullopt
// after an error reply.
std::optional<std::span<const std::string_view>> read_counted_keys(Request& r, size_t i) {
  const auto count = parse_int_in(r.arg(i), 1, INT64_MAX);
  if (!count) {
    r.reply.error("ERR numkeys should be greater than 0");
    return std::nullopt;
  }
  if (static_cast<uint64_t>(*count) >= r.argc() - i - 1) return reply_syntax_error(r), std::nullopt;
  return r.argv.subspan(i + 1, static_cast<size_t>(*count));
}

// Reads an optional COUNT, which must be the last option; 1 if it is absent. Returns nullopt after an error
// reply.
std::optional<int64_t> read_pop_count(Request& r, size_t i) {
  if (i == r.argc()) return 1;
  if (!equals_ignore_case(r.arg(i), "COUNT") || i + 1 == r.argc())
    return reply_syntax_error(r), std::nullopt;
  const auto count = parse_int_in(r.arg(i + 1), 1, INT64_MAX);
  if (!count) return r.reply.error("ERR count should be greater than 0"), std::nullopt;
  if (i + 2 < r.argc()) return reply_syntax_error(r), std::nullopt;
  return count;
}

}  // namespace

std::optional<DurationMs> read_timeout(Request& r, size_t i) {
  const auto seconds = parse_float(r.arg(i));
  if (!seconds) {
    r.reply.error("ERR timeout is not a float or out of range");
    return std::nullopt;
  }
  // A part of a millisecond counts as a whole one. Redis shows a number that is too large as a negative
  // one.
  const long double ms = std::ceil(*seconds * 1000);
  if (ms < 0 || ms >= 0x1p63L) {
    r.reply.error("ERR timeout is negative");
    return std::nullopt;
  }
  return DurationMs{ms < static_cast<long double>(kMaxTtlMs) ? static_cast<int64_t>(ms) : kMaxTtlMs};
}

bool pop_now(Request& r, const PopTerms& terms, PopElements pop, std::span<const std::string_view> keys) {
  for (const std::string_view bytes : keys) {
    const Key key = r.keys().key(bytes);
    const Keyspace::Found f = find_live(r.ctx, r.c.db, key);
    if (!f) continue;
    type_of(*f) == terms.type ? pop(r, terms, key) : reply_wrong_type(r);
    return true;
  }
  return false;
}

void pop_or_wait(Request& r, PopTerms terms, PopElements pop, std::span<const std::string_view> keys,
                 DurationMs timeout) {
  if (pop_now(r, terms, pop, keys)) return;
  if (!r.may_block) return terms.target ? r.reply.null() : r.reply.null_array();
  const Limits& limits = r.s().config.limits;
  if (keys.size() > limits.keys_per_wait) {
    return r.reply.error("ERR too many keys to wait for, at most " + std::to_string(limits.keys_per_wait));
  }
  auto w = std::make_unique<PopWaiter>();
  static_cast<PopTerms&>(*w) = std::move(terms);
  w->command = &r.command;
  w->pop = pop;
  switch (wait_for_elements(r.ctx, r.c, std::move(w), keys, timeout)) {
    case Admission::kTooMany:
      return r.reply.error("ERR too many waiters, see max-waiters");
    case Admission::kTooManyOnKey:
      return r.reply.error("ERR too many waiters for this key, see max-waiters-per-key");
    default:
      return;  // the reply follows later
  }
}

void pop_from_first(Request& r, size_t at, bool blocking, ReadPopTerms read_terms, PopElements pop) {
  const auto keys = read_counted_keys(r, at);
  if (!keys) return;
  const size_t where = at + 1 + keys->size();
  auto terms = read_terms(r, where);
  if (!terms) return;
  terms->count = read_pop_count(r, where + 1);
  if (!terms->count) return;
  const auto timeout = blocking ? read_timeout(r, 1) : DurationMs{0};
  if (!timeout) return;
  if (blocking) return pop_or_wait(r, std::move(*terms), pop, *keys, *timeout);
  if (!pop_now(r, *terms, pop, *keys)) r.reply.null_array();
}

}  // namespace holdfast
