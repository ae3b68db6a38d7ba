// CLIENT PAUSE: requests that arrive during a pause are kept with their connections, and run when it is
// over.
#pragma once

#include <optional>

#include "core/base/types.h"

namespace holdfast {

struct Pause {
  std::optional<TimeMs> until;  // nullopt: no pause
  bool writes_only = false;
  bool over = false;  // the kept requests must run before the loop iteration ends
};

}  // namespace holdfast
