// Reads the data folder at the start, in steps: the snapshot, then the journals after it. It syncs the
// journals that it reads, or writes them again. Of these files it changes only journals that a crash of the
// machine cut off: it cuts a torn tail, and renames the journals after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/codec/journal_frame.h"
#include "core/engine/engine.h"
#include "core/persist/load_snapshot.h"
#include "io/disk/gunzip.h"
#include "io/os/files.h"

namespace holdfast {

// Returns the numbers of the journals in the folder, in ascending order.
Result<std::vector<uint64_t>> list_journals(Files& files);
struct SnapshotFile {
  std::string name;       // empty: there is none
  PeekedJournal journal;  // as far as the file can be read
};
// A snapshot may have one of two names. Returns the one that exists; the newer of two.
Result<SnapshotFile> find_snapshot(Files& files);

// Fails if a newer version of Holdfast wrote a journal of the folder. It reads only the heads.
Result<Done> reject_newer_journals(Files& files);

// The journals of a folder, as a start reads them.
struct JournalChain {
  std::vector<uint64_t> stale;     // the snapshot replaces them
  std::vector<uint64_t> journals;  // in ascending order
  uint64_t missing = 0;            // the first number that is missing; 0: none
  size_t gap = 0;                  // the index in `journals` of the first one behind it
  bool needed = false;             // the snapshot does not count without the missing journal

  // Whether a start fails. A crash of the machine may lose the name of a journal that was never synced.
  bool refuses(bool lossless) const { return missing != 0 && (lossless || needed); }
};
// `all`: the numbers of all journals. `snapshot`: the journal that the snapshot names; nullopt without a
// snapshot. `named`: that journal must exist.
JournalChain chain_journals(const std::vector<uint64_t>& all, std::optional<uint64_t> snapshot, bool named);

class Recovery {
 public:
  struct Rules {
    bool skip_unknown = false;  // skip types that Holdfast does not support
    // The machine has not restarted since the last write to the folder, so that no written data was lost.
    bool lossless = true;
    // The folder has its file `meta`. A snapshot alone may be a copy from elsewhere, without its journal.
    bool has_meta = true;
    bool clean = false;  // the last stop was clean: its sync of the journals succeeded
  };
  // `now`: the files have deadlines on the wall clock; the engine counts them on its own clock
  // (SavedClock).
  Recovery(Files& files, Engine& engine, Now now, Rules rules);

  // Works for a few milliseconds. Returns true if everything has been read. A failure names the error, its
  // position and a remedy.
  Result<bool> step();

  // After everything has been read: the journal to continue, 0 if there is none, and the sequence of its
  // next frame.
  uint64_t journal() const { return journal_; }
  // The number that the next journal must have, so that the next start finds no gap.
  uint64_t next_journal() const {
    return journals_.empty() ? std::max<uint64_t>(first_, 1) : journals_.back() + 1;
  }
  uint64_t next_sequence() const { return next_sequence_; }
  // Whether bytes of the journals may not be on disk, although a later sync of these files succeeds.
  bool may_lack_bytes() const { return may_lack_bytes_; }
  // Whether the journal that the snapshot names has no head. It had one when the snapshot was saved.
  bool misses_named_journal() const { return misses_named_; }
  bool found_nothing() const { return restore_ == nullptr && journals_.empty(); }
  uint64_t keys() const { return restore_ == nullptr ? 0 : restore_->keys(); }
  uint64_t skipped_keys() const { return restore_ == nullptr ? 0 : restore_->skipped_keys(); }
  uint64_t frames() const { return frames_; }
  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t read_bytes() const { return read_bytes_ + scanned_bytes_; }
  const std::vector<uint64_t>& stale() const {
    return stale_;
  }  // journals that the snapshot replaces; the caller removes their files

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
  Result<Done> keep(const std::string& name, std::string_view bytes);
  Result<Done> cut(const std::string& name, const JournalVerdict& verdict);
  std::string remedy(const JournalVerdict& verdict, const std::string& name) const;
  std::string repair_of_folder() const;

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
  size_t at_ = 0;  // index in journals_
  std::string bytes_;
  std::unique_ptr<JournalScanner> scanner_;
  uint64_t journal_ = 0;
  uint64_t first_ = 0;  // the journal that the snapshot names
  uint64_t next_sequence_ = 1;
  bool may_lack_bytes_ = false;
  bool misses_named_ = false;
  uint64_t frames_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t read_bytes_ = 0;     // in completed files
  uint64_t scanned_bytes_ = 0;  // in the present file
};

}  // namespace holdfast
