// Records of changes that the shell has not taken yet, and the state that later records depend on. The
// functions of events/record_changes.h write the records.
#pragma once

#include <absl/container/btree_set.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/types.h"
#include "core/codec/journal_record.h"

namespace holdfast {

inline constexpr int64_t kNoClock = INT64_MIN;

struct Journal {
  bool on = false;
  std::string out;      // records of this loop iteration
  bool grants = false;  // a record grants something that a client may rely on (not only ends)
  // While a resumable request is deferred: the bytes of `out`, and their `grants`, that were recorded
  // before it began. The shell takes them meanwhile, as replies rely on them.
  size_t settled = 0;
  bool settled_grants = false;
  // Large values changed before it, so their records wait for its end, and so must the replies.
  bool withholds = false;
  // A key whose record is deferred: one change is often several steps, and only the last state counts.
  bool pending = false;
  DbIndex db = 0;
  std::string key;
  // Keys with large values. Their records are deferred to the end of the loop iteration, so that a key is
  // written once however often it changes. `changed_at` is the time of the last change.
  absl::btree_set<std::pair<DbIndex, std::string>> large;
  Now changed_at;
  // The two keys of a move or copy that is under way, or twice the key of a RESTORE. One record of it
  // replaces all their records.
  struct Move {
    Record op = Record::kMove;
    DbIndex db = 0;
    std::string from;
    DbIndex to_db = 0;
    std::string to;

    bool has(DbIndex at, std::string_view name) const {
      return (at == db && name == from) || (at == to_db && name == to);
    }
  };
  std::optional<Move> move;
  TimeMs latest_deadline{0};    // latest of all recorded deadlines; kNever if one of them is kNever
  int64_t ahead_ms = kNoClock;  // of the last clock record in this file
  // The last clock record that was read from this file. The id is empty if there is none.
  std::string read_boot_id;
  int64_t read_ahead_ms = 0;
};

}  // namespace holdfast
