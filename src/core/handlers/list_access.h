// What the commands of lists share: replies with elements, the event of removal, and the ends.
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

// Reads LEFT or RIGHT. Returns nullopt after an error reply.
std::optional<ListEnd> read_list_end(Request& r, size_t i);

}  // namespace holdfast
