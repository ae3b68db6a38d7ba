// The journal that is being written: frames go to it at the end of each turn, and to the platter by a job.
// A write that fails is kept and tried again; a sync that fails is final for its file, and only another
// journal, behind a new snapshot, makes things good.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/os/files.h"
#include "io/os/jobs.h"

namespace holdfast {

std::string journal_name(uint64_t number);

class JournalWriter {
 public:
  JournalWriter(Files& files, uv_loop_t* loop) : files_(files), loop_(loop) {}
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // Goes on with a journal that is there, whose next frame has this sequence.
  Result<Done> resume(uint64_t number, uint64_t next_sequence);
  // Begins another; from now on all goes there. On an error the old one stays.
  Result<Done> begin(uint64_t number);

  // Writes the records of a turn as one frame. False: they are kept, as all that follows is, until
  // retry() succeeds.
  bool commit(std::string_view records);
  bool retry();

  // Begins to bring all that is written to disk. `done` is called on the loop.
  void start_sync(std::function<void()> done);
  // The same at once, for a stop. False: it failed.
  bool sync_now();

  // The folder was replaced: the journal in it counts as not written, with all that it was to keep, until
  // begin() makes another and a snapshot has everything (forget_before).
  void leave_folder();

  // A snapshot has everything that the journals before this one were to keep, whatever becomes of them.
  void forget_before(uint64_t generation);

  uint64_t number() const { return number_; }
  // How many journals have been begun: never used twice, as a number may be after leave_folder().
  uint64_t generation() const { return generation_; }
  uint64_t bytes() const { return bytes_; }  // of this journal
  uint64_t next_sequence() const { return next_sequence_; }
  bool syncing() const { return syncing_; }
  bool all_written() const { return unwritten_.empty() && !left_folder_ && !awaits_snapshot_; }
  bool all_synced() const { return all_written() && synced_ == written_ && !sync_failed_; }
  // Whether a sync would bring something to disk.
  bool needs_sync() const { return synced_ != written_ && !sync_failed_ && !syncing_ && !left_folder_; }
  // Why nothing can be kept at present; empty: all is well.
  const std::string& failure() const { return failure_; }
  bool sync_failed() const { return sync_failed_; }

 private:
  void fail(std::string_view what, int error);

  Files& files_;
  uv_loop_t* loop_;
  struct Generation {
    uint64_t generation;
    std::shared_ptr<File> file;
    int error = 0;  // of its sync
  };
  std::shared_ptr<File> file_;
  std::vector<Generation> earlier_;  // journals that end, not yet synced: they come first
  uint64_t needless_before_ = 0;     // journals that a snapshot has replaced
  uint64_t generation_ = 0;
  uint64_t number_ = 0;
  uint64_t next_sequence_ = 1;
  uint64_t bytes_ = 0;
  std::string unwritten_;  // frames
  uint64_t written_ = 0;   // bytes of all journals since the start
  uint64_t synced_ = 0;
  bool unnamed_ = false;  // the folder has not been synced since the journal was made
  bool syncing_ = false;
  bool sync_failed_ = false;
  bool left_folder_ = false;      // see leave_folder()
  bool awaits_snapshot_ = false;  // frames were dropped that only the snapshot under way has
  std::string failure_;
};

}  // namespace holdfast
