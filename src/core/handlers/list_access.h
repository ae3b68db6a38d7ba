// What the commands of lists share: replies with elements, and numbers with Redis's errors.
#pragma once

#include <cstdint>
#include <optional>

#include "core/keyspace/list_body.h"
#include "core/state/request.h"

namespace holdfast {

// `count` elements from the index `first` on.
struct ListRange {
  size_t first = 0;
  size_t count = 0;
};

// Replies with an array of these elements, which must exist. `backward`: the last one first.
void reply_elements(Request& r, const ListBody& list, ListRange range, bool backward = false);

// Publishes "del" if the last element of the list was removed.
void notify_if_removed(Request& r, const Key& key);

// Reads a number that may be negated. Returns nullopt after an error reply.
std::optional<int64_t> read_list_number(Request& r, size_t i);

// Reads LEFT or RIGHT. Returns nullopt after an error reply.
std::optional<ListEnd> read_list_end(Request& r, size_t i);

}  // namespace holdfast
