// What a server knows of waits by ticket beside its queues. All of it is lost at a restart.
#pragma once

#include "core/base/types.h"
#include "core/state/floors.h"
#include "core/state/relay.h"

namespace holdfast {

struct Tickets {
  Relay relay;
  Floors floors;
  // A hold that was last set at or before this time is from the data folder. It may have been a vote.
  TimeMs loaded_at{-kMaxTtlMs};
};

}  // namespace holdfast
