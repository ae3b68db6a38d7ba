// Checks of values that several functions of the API take.
#pragma once

#include <stdexcept>
#include <string>

#include "core/base/types.h"
#include "holdfast/options.h"

namespace holdfast {

inline void check_ttl(milliseconds ttl) {
  static_assert(LockOptions::kLongestTtl.count() == kMaxTtlMs);
  if (ttl < LockOptions::kShortestTtl || ttl > LockOptions::kLongestTtl)
    throw std::invalid_argument("ttl must be 10 to 9007199254740991 ms, not " +
                                std::to_string(ttl.count()));
}

}  // namespace holdfast
