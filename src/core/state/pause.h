// CLIENT PAUSE: requests that come meanwhile are kept with their connections, and run when it is over.
#pragma once

#include <optional>

#include "core/base/types.h"

namespace holdfast {

struct Pause {
  std::optional<TimeMs> until;  // nullopt: none
  bool writes_only = false;
  bool over = false;  // what was kept is to be run before the turn ends
};

}  // namespace holdfast
