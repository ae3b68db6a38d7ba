// Reads the data folder at the start, a piece at a time: the snapshot, then the journals behind it. Changes
// nothing but a journal's torn tail, which it cuts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/codec/journal_frame.h"
#include "core/engine/engine.h"
#include "core/persist/load_snapshot.h"
#include "io/disk/gunzip.h"
#include "io/os/files.h"

namespace holdfast {

// The numbers of the journals in the folder, in order.
Result<std::vector<uint64_t>> list_journals(Files& files);
// Of the two names that a snapshot may have, the one that is there; of two the younger, empty for none.
Result<std::string> find_snapshot(Files& files);

class Recovery {
 public:
  struct Rules {
    bool skip_unknown = false;  // leave out types that Holdfast does not have
    // The system has not restarted since the folder was written to, so that nothing written was lost.
    bool lossless = true;
    // The folder has its meta. A snapshot alone may have been copied from elsewhere, without its journal.
    bool has_meta = true;
  };
  // `now`: deadlines are kept by the wall clock, and counted on the engine's from then on (SavedClock).
  Recovery(Files& files, Engine& engine, Now now, Rules rules);

  // Does about a few milliseconds' work; true: all has been read. A failure says what is wrong, where, and
  // what to do.
  Result<bool> step();

  // Once all has been read: the journal to go on with, 0 where there is none, and its next frame's
  // sequence.
  uint64_t journal() const { return journal_; }
  // The number that the next journal must have, so that the next start misses none.
  uint64_t next_journal() const {
    return journals_.empty() ? std::max<uint64_t>(first_, 1) : journals_.back() + 1;
  }
  uint64_t next_sequence() const { return next_sequence_; }
  bool found_nothing() const { return restore_ == nullptr && journals_.empty(); }
  uint64_t keys() const { return restore_ == nullptr ? 0 : restore_->keys(); }
  uint64_t skipped_keys() const { return restore_ == nullptr ? 0 : restore_->skipped_keys(); }
  uint64_t frames() const { return frames_; }
  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t read_bytes() const { return read_bytes_ + scanned_bytes_; }
  const std::vector<uint64_t>& stale() const {
    return stale_;
  }  // journals that the snapshot has made needless

 private:
  Result<Done> begin();
  Result<Done> choose_journals();
  Result<bool> step_snapshot();
  Result<bool> step_journals();
  Result<Done> open_journal();
  bool misses_frames() const;
  Result<bool> end_before_gap();
  Result<Done> set_aside(size_t from, const std::string& why);
  Result<bool> close_journal();
  Result<Done> cut(const std::string& name, const JournalVerdict& verdict);
  std::string remedy(const JournalVerdict& verdict, const std::string& name) const;

  Files& files_;
  Engine& engine_;
  Now now_;
  Rules rules_;
  bool begun_ = false;
  std::unique_ptr<Gunzip> snapshot_;
  std::string snapshot_name_;
  std::unique_ptr<Restore> restore_;
  std::vector<uint64_t> journals_;
  std::vector<uint64_t> stale_;
  size_t at_ = 0;  // of journals_
  std::string bytes_;
  std::unique_ptr<JournalScanner> scanner_;
  uint64_t journal_ = 0;
  uint64_t first_ = 0;  // the journal that the snapshot names
  uint64_t next_sequence_ = 1;
  uint64_t frames_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;     // of files that are done
  uint64_t scanned_bytes_ = 0;  // of the present one
};

}  // namespace holdfast
