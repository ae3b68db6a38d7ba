// What the engine leaves for the shell to do.
#pragma once

#include <vector>

#include "core/base/types.h"

namespace holdfast {

// What the shell must do after a turn of its loop, in this order.
struct Effects {
  // 1. Send the output of each of these as far as the socket takes it at once, close it, then drop() it.
  // First, so that whoever has another client killed hears of it when that is done.
  std::vector<ConnId> closes;
  // 2. Send Engine::output() of each of these. A connection stands here once, however many replies it got.
  std::vector<ConnId> dirty;
  // 3. Parse on where buffered input was left: these are no longer blocked, and no readable event will
  // come.
  std::vector<ConnId> wakes;

  bool empty() const { return dirty.empty() && wakes.empty() && closes.empty(); }
  void clear() {
    dirty.clear();
    wakes.clear();
    closes.clear();
  }
};

}  // namespace holdfast
