// Records of changes that the shell has not taken yet, and what the next ones depend on. The functions that
// write them are those of events/record_changes.h.
#pragma once

#include <absl/container/btree_set.h>

#include <string>
#include <utility>

#include "core/base/types.h"

namespace holdfast {

inline constexpr int64_t kNoClock = INT64_MIN;

struct Journal {
  bool on = false;
  std::string out;      // records of this turn
  bool grants = false;  // whether they have anything to rely on, not only ends
  // A key whose record is put off: one change is often several steps, and only the last state counts.
  bool pending = false;
  DbIndex db = 0;
  std::string key;
  // Keys with large values, whose records are put off to the end of the turn: however often a turn changes
  // one, it is written once. The time of the last change.
  absl::btree_set<std::pair<DbIndex, std::string>> large;
  Now changed_at;
  TimeMs latest_deadline{0};    // of all that was ever recorded here; kNever where something has none
  int64_t ahead_ms = kNoClock;  // of the last clock in this file
  // The last clock that was read of this file; no id: none.
  std::string read_boot_id;
  int64_t read_ahead_ms = 0;
};

}  // namespace holdfast
