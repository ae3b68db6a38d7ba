// A second way to the engine, beside the connections of the server: what the loop tells it.
#pragma once

#include "core/base/types.h"
#include "io/os/result.h"

namespace holdfast {

class Door {
 public:
  Door() = default;
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  virtual ~Door() = default;

  // Begins to listen. Called before the server reads its data, so that probes get an answer meanwhile.
  virtual Result<Done> start() = 0;
  // The end of a loop iteration: its changes are on their way to the disk. The door sends the replies that
  // waited for it.
  virtual void settle(const Now& now) = 0;
  // The iteration took so long, from the end of the poll to its own end.
  virtual void record_iteration(uint64_t ns) = 0;
  // Closes all handles. `kept`: the disk has everything that the server has promised.
  virtual void stop(bool kept) = 0;
};

}  // namespace holdfast
