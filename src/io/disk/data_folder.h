// The open data folder: the journal gets the records of each loop iteration, and `meta` stays ahead of the
// tokens and the holds that the engine grants. From what is on disk follows which replies may leave. Knows
// neither when a snapshot begins nor why the folder was replaced. Runs on the loop's thread.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/codec/hold_codec.h"
#include "core/engine/engine.h"
#include "io/config/options.h"
#include "io/disk/iteration_grants.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/os/clock.h"
#include "io/os/files.h"

namespace holdfast {

class DataFolder {
 public:
  // What the replies of one loop iteration promise: the data that must be on disk before they leave.
  struct Promise {
    uint64_t journal = 0;  // a position of the journal
    Issued meta;
    // The numbers of the writes that bring it to the disk. Replies with equal numbers wait equally long.
    uint64_t journal_write = 0;
    uint64_t meta_write = 0;
  };
  // This boot of the machine.
  struct Boot {
    std::string kernel;  // empty if even the end of the process may lose written data
    std::string clock_id;
    int64_t first_ahead_ms = 0;  // see Config
  };

  // `options` must outlive it.
  DataFolder(std::unique_ptr<Files> files, const Options& options, ReadClock read_clock);
  void set_boot(Boot boot) { boot_ = std::move(boot); }
  // From here on there are an engine, its loop and a journal, which is not open yet.
  void start(Engine& engine, uv_loop_t* loop);
  bool has_started() const { return engine_ != nullptr; }

  Files& files() { return *files_; }
  const std::string& path() const { return files_->path(); }
  MetaKeeper& meta() { return meta_; }
  const MetaKeeper& meta() const { return meta_; }
  JournalWriter& journal() { return *journal_; }
  const JournalWriter& journal() const { return *journal_; }
  Engine& engine() const { return *engine_; }
  uv_loop_t* loop() const { return loop_; }
  const Options& options() const { return options_; }
  Now now() const { return read_clock_(); }
  const Boot& boot() const { return boot_; }
  SavedClock clock() const { return {boot_.clock_id, boot_.first_ahead_ms}; }
  // Whether a journal is kept, and whether each reply waits for its sync.
  bool journals() const { return options_.appendonly == "yes"; }
  bool always() const { return journals() && options_.appendfsync == "always"; }

  // Journals have ascending numbers. Begins the next one, and returns its number. Without a journal it only
  // takes the number, because snapshots are numbered in the same way.
  Result<uint64_t> begin_journal();
  void set_next_journal(uint64_t number) { next_journal_ = number; }
  // Removes the files in a job: the file system is slow to free a large file, which would block the loop.
  void remove_journals_below(uint64_t number);
  bool removes_journals() const { return removals_ > 0; }

  // Writes the records of the engine as one frame.
  void commit();
  // The number of frames so far. A snapshot without all of them is not complete.
  uint64_t frames() const { return frames_; }
  // The replies of an iteration have left, or are held.
  void end_iteration() { grants_.end(*engine_); }
  // Begins a write of meta, if tokens or holds of the engine are near the end of what it covers. `done` is
  // called after it.
  void keep_meta_ahead(const Now& now, const std::function<void()>& done);

  // See Store.
  bool may_reply(const Now& now) const;
  Promise promise(const Now& now) const;
  bool is_kept(const Promise& promise, const Now& now) const;
  bool may_reply_to_others() const;

  // The latest deadline of the holds that a crash would lose.
  Horizon holds_to_keep(const Now& now) const;
  // Adds the holds for which this run waits. The next start must wait for them, too.
  Horizon with_lost_holds(Horizon holds, const Now& now) const;
  bool is_recovering(const Now& now) const;

  // Why the folder itself cannot be used: it is gone, or not complete. Empty if it can.
  const std::string& unusable() const { return unusable_; }
  void set_unusable(const std::string& why) { unusable_ = why; }
  // Why changes cannot be kept at present: the reason in -MISCONF. Empty if they can.
  std::string failure() const;
  // Rejects grants while they cannot be written to disk.
  void update_availability();

  // Opens the folder that is now at the path. On an error the former one stays in use, without meta.
  Result<Done> reopen();
  uint64_t reopened() const { return reopened_; }  // how often

 private:
  const Options& options_;
  ReadClock read_clock_;
  std::unique_ptr<Files> files_;
  MetaKeeper meta_;
  std::optional<JournalWriter> journal_;
  Boot boot_;
  Engine* engine_ = nullptr;
  uv_loop_t* loop_ = nullptr;
  IterationGrants grants_;
  uint64_t frames_ = 0;
  uint64_t next_journal_ = 1;
  int removals_ = 0;  // jobs that remove old journals
  uint64_t reopened_ = 0;
  std::string unusable_;
};

}  // namespace holdfast
