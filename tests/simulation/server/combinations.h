// Counts rare combinations, to show that the runs have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace holdfast::simulation {

struct Combinations {
  uint64_t mixed_runs = 0;  // runs with SESSION and LIMIT in one lock, a lease, MULTI and RENAME
  uint64_t forever = 0;     // locks with ttl 0
  uint64_t ends_in_save =
      0;  // stops, kills and crashes during the recovery wait, while a snapshot was written

  void add(const Combinations& more);
  std::string text() const;
};

// The server grants nothing, as lost locks may be valid.
bool is_recovering(Engine& engine);
bool is_saving(Engine& engine);

// Of one run.
class CombinationCounter {
 public:
  void note_request(const std::vector<std::string>& words);
  // A process is about to end, or is told to.
  void note_end(Engine* engine);
  const Combinations& counts() const { return counts_; }

 private:
  Combinations counts_;
  bool session_with_limit_ = false;
  bool lease_ = false;
  bool multi_ = false;
  bool rename_ = false;
};

}  // namespace holdfast::simulation
