// A snapshot of all entries, in steps: see Keyspace::begin_save().
#include <algorithm>
#include <utility>

#include "core/keyspace/keyspace.h"

namespace holdfast {

// All present entries have the mark of the last snapshot. All new entries get the other mark.
void Keyspace::begin_save(SaveEntry save) {
  if (marks_missing_) {  // the snapshot before was aborted
    save_ = [](Handle, const Entry&) { return size_t{0}; };
    while (!save_step()) {
    }
  }
  save_ = std::move(save);
  save_table_ = 0;
  save_mark_ ^= 1U;
  marks_missing_ = true;
}

size_t Keyspace::save_now(Handle h, Entry& e) {
  e.saved = save_mark_ & 1U;
  return save_(h, e);
}

// Restarts at the beginning of the table each time, as the table may have changed, and skips marked
// entries. So a step in a large table must not be too small. Entries of a table are not in memory order, so
// the next ones are prefetched.
bool Keyspace::save_step() {
  constexpr size_t kEntries = 256;
  constexpr size_t kBytes = size_t{64} << 10U;
  constexpr size_t kPartsOfTable = 16;
  constexpr size_t kFetchAhead = 12;
  marks_missing_ = save_table_ < tables_.size();
  if (!marks_missing_) return true;
  const Table& table = tables_[save_table_];
  size_t left = std::max(kEntries, table.size() / kPartsOfTable);
  size_t bytes = 0;
  auto ahead = table.begin();
  for (size_t i = 0; i < kFetchAhead && ahead != table.end(); ++i) arena_.prefetch(*ahead++);
  for (const Handle h : table) {
    if (ahead != table.end()) arena_.prefetch(*ahead++);
    Entry& e = entry(h);
    if (e.saved == save_mark_) continue;
    if (left-- == 0 || bytes > kBytes) return false;
    bytes += save_now(h, e);
  }
  ++save_table_;
  marks_missing_ = save_table_ < tables_.size();
  return !marks_missing_;
}

}  // namespace holdfast
