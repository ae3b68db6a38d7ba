// Deadlock detection.
#pragma once

#include <string_view>

#include "core/state/context.h"
#include "core/state/wait_queue.h"

namespace holdfast {

// A request that is about to wait.
struct NewWait {
  std::string_view owner;
  Capacity capacity;
  bool upgrade;  // the owner holds the key in a weaker mode
  Rank place;    // in the queue
};

// Whether the owner, if it waited in queue `q`, would in the end wait for itself.
bool would_deadlock(Context& ctx, const WaitQueue* q, const NewWait& wait);

}  // namespace holdfast
