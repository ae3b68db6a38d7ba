// The open journal: gets a frame at the end of each loop iteration, and a job syncs it to disk. A failed
// write is kept and retried. A failed sync is final for its file: only a new journal after a new snapshot
// repairs it.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/duration_histogram.h"
#include "io/os/files.h"
#include "io/os/jobs.h"

namespace holdfast {

std::string journal_name(uint64_t number);

class JournalWriter {
 public:
  JournalWriter(Files& files, uv_loop_t* loop) : files_(files), loop_(loop) {}
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // There is no journal yet, and `why` says the reason. The frames wait in memory for begin(), and a
  // snapshot must have their data: as after leave_folder().
  void stay_closed(uint64_t next_sequence, const std::string& why);
  // Continues an existing journal. `next_sequence` is the sequence of its next frame.
  Result<Done> resume(uint64_t number, uint64_t next_sequence);
  // Begins a new journal; all later frames go to it. On an error the old journal stays in use.
  Result<Done> begin(uint64_t number);

  // Writes the records of one loop iteration as one frame. Returns false if the write failed: then this
  // frame and all later ones are kept in memory until retry() succeeds. Records of more than `most_bytes`
  // fit in no frame: until a snapshot has their data, no later frame is written either.
  bool commit(std::string_view records, uint64_t most_bytes = UINT32_MAX);
  bool retry();

  // Bytes of the journals that the start has read may not be on disk: as after a failed sync.
  void distrust();

  // Begins to sync everything written so far. `done` is called on the loop.
  void start_sync(std::function<void()> done);
  // Syncs synchronously, for a stop. Returns false if it failed.
  bool sync_now();

  // The folder was replaced: the journal in it, with all its frames, counts as not written. This ends after
  // begin() has made a new journal and a snapshot has all data (forget_before).
  void leave_folder();

  // A snapshot contains all data of the journals with an earlier generation. Errors of those journals no
  // longer matter. Writes the frames that waited for that snapshot.
  void forget_before(uint64_t generation);

  uint64_t number() const { return number_; }
  // The number of journals begun so far. Never repeats, while number() may repeat after leave_folder().
  uint64_t generation() const { return generation_; }
  uint64_t bytes() const { return bytes_; }  // size of this journal
  uint64_t next_sequence() const { return next_sequence_; }
  bool syncing() const { return syncing_; }
  // The end of the frames so far, those not yet written included: see is_written(). Grows only.
  uint64_t position() const { return written_ + unwritten_.size(); }
  // Whether everything up to a position is written (synced), or a snapshot has its data.
  bool is_written(uint64_t position) const { return position <= written_ && !lacks_base(); }
  bool is_synced(uint64_t position) const { return is_written(position) && position <= synced_; }
  // The number of the sync that covers a position: the last one begun, or else the one after it.
  uint64_t sync_for(uint64_t position) const { return syncs_ + (position <= syncing_to_ ? 0 : 1); }
  bool all_written() const { return is_written(position()); }
  bool all_synced() const { return all_written() && synced_ == written_ && !failed_; }
  // Whether there are bytes to sync, and a sync can begin now.
  bool needs_sync() const { return synced_ != written_ && !failed_ && !syncing_ && !left_folder_; }
  // Why the journal cannot be written or synced now. Empty if it can.
  const std::string& failure() const { return failure_; }
  const DurationHistogram& sync_times() const { return sync_times_; }
  bool sync_failed() const { return failed_.has_value(); }

 private:
  struct Generation {
    uint64_t generation;
    std::shared_ptr<File> file;
    int error = 0;  // errno of its sync
  };
  // The system reports a failure to the first sync only: so a stop needs the result of a sync under way.
  struct Sync {
    std::mutex mutex;
    bool done = false;
    bool unnamed = false;
    uint64_t took_ns = 0;
    std::vector<Generation> files;
  };
  static constexpr size_t kKeptBytes = size_t{1} << 20U;  // of unwritten_ while it is empty

  // The frames of the present journal follow frames that only an unfinished snapshot has. So they are not
  // written before it is complete: without it, a start would apply them to an older state.
  bool lacks_base() const { return left_folder_ || awaits_snapshot_; }
  void fail(std::string_view what, int error);
  void give_up(size_t frame);
  std::shared_ptr<Sync> make_sync();
  void run(Sync& sync);
  void note_errors(const Sync& sync);

  Files& files_;
  uv_loop_t* loop_;
  std::shared_ptr<File> file_;
  std::vector<Generation> earlier_;  // ended journals, not yet synced: synced before file_
  uint64_t needless_before_ = 0;     // a snapshot replaces earlier generations
  uint64_t generation_ = 0;
  uint64_t named_ = 0;  // the last generation whose file's name is on disk
  uint64_t number_ = 0;
  uint64_t next_sequence_ = 1;
  uint64_t bytes_ = 0;
  std::string unwritten_;  // frames not yet in the file
  uint64_t unwritten_frames_ = 0;
  uint64_t written_ = 0;  // bytes of all journals since the start
  uint64_t synced_ = 0;
  uint64_t syncs_ = 0;       // number of syncs begun
  uint64_t syncing_to_ = 0;  // what the last of them covers
  bool syncing_ = false;
  std::shared_ptr<Sync> sync_;      // the last one begun
  std::optional<uint64_t> failed_;  // the last generation whose sync failed; nullopt: none
  bool left_folder_ = false;        // see leave_folder()
  bool awaits_snapshot_ = false;    // frames were dropped; only the unfinished snapshot has their data
  std::string failure_;
  DurationHistogram sync_times_;
};

}  // namespace holdfast
