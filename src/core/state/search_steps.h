// The budget of searches for deadlocks.
#pragma once

#include <cstddef>

#include "core/base/types.h"

namespace holdfast {

// The budget that all searches for deadlocks share: see deadlock.cc.
struct SearchSteps {
  size_t saved = 0;
  TimeMs counted;  // steps are saved up to this time
};

}  // namespace holdfast
