// Commands that pop from the first of several keys that has an element, and may wait for one: their
// arguments and their steps, for lists and sorted sets.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/base/types.h"
#include "core/state/request.h"
#include "core/state/wait_queue.h"

namespace holdfast {

// Reads a timeout in seconds. Returns nullopt after an error reply. 0: none.
std::optional<DurationMs> read_timeout(Request& r, size_t i);

// Pops from the first key that has a value, and replies. Replies -WRONGTYPE if this value has another type.
// Returns false if no key has a value; nothing has been replied then.
bool pop_now(Request& r, const PopTerms& terms, PopElements pop, std::span<const std::string_view> keys);
// The same, but then waits. In a transaction or a script it replies at once as if the timeout were over.
void pop_or_wait(Request& r, PopTerms terms, PopElements pop, std::span<const std::string_view> keys,
                 DurationMs timeout);

// LMPOP and ZMPOP, and with `blocking` BLMPOP and BZMPOP. Their count of keys is the argument `at`.
// `read_terms` reads the end to pop from in the argument `i`. It returns nullopt after an error reply.
using ReadPopTerms = std::optional<PopTerms> (*)(Request& r, size_t i);
void pop_from_first(Request& r, size_t at, bool blocking, ReadPopTerms read_terms, PopElements pop);

}  // namespace holdfast
