// Changes of bodies, counted in the memory of the keyspace.
#pragma once

#include <cstdint>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

// Calls `change()`, which changes the body, and reports its growth in bytes to the keyspace. Returns the
// result of `change`.
template <class Change>
auto change_body(Keyspace& keys, const ValueBody& body, Change change) {
  const uint64_t before = body.bytes();
  auto result = change();
  keys.add_body_growth(static_cast<int64_t>(body.bytes() - before));
  return result;
}

}  // namespace holdfast
