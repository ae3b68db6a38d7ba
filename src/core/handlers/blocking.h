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

// Reads a number of keys, and the keys behind it; at least one more argument follows them. Returns nullopt
// after an error reply.
std::optional<std::span<const std::string_view>> read_counted_keys(Request& r, size_t i);
// Reads an optional COUNT, which must be the last option; 1 if it is absent. Returns nullopt after an error
// reply.
std::optional<int64_t> read_pop_count(Request& r, size_t i);

// Pops from the first key that has a value, and replies. Replies -WRONGTYPE if this value has another type.
// Returns false if no key has a value; nothing has been replied then.
bool pop_now(Request& r, const PopTerms& terms, PopElements pop, std::span<const std::string_view> keys);
// The same, but then waits. In a transaction or a script it replies at once as if the timeout were over.
void pop_or_wait(Request& r, PopTerms terms, PopElements pop, std::span<const std::string_view> keys,
                 DurationMs timeout);

}  // namespace holdfast
