// The work that the engine leaves to the shell.
#pragma once

#include <vector>

#include "core/base/types.h"

namespace holdfast {

// The work of the shell at the end of a loop iteration, in this order.
struct Effects {
  // 1. For each of these: send the output as far as the socket takes it at once, close it, then drop() it.
  // This comes first, so that a client that kills another client gets its reply after the kill is done.
  std::vector<ConnId> closes;
  // 2. Send Engine::output() of each of these. A connection is listed once, however many replies it got.
  std::vector<ConnId> dirty;
  // 3. Continue to parse the buffered input of each of these. They are no longer blocked, and no readable
  // event will come.
  std::vector<ConnId> wakes;

  bool empty() const { return dirty.empty() && wakes.empty() && closes.empty(); }
  void clear() {
    dirty.clear();
    wakes.clear();
    closes.clear();
  }
};

}  // namespace holdfast
