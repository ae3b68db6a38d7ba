// The data folder of a running server: reads it at the start, writes it at the end of each loop iteration,
// and saves snapshots in the background. Decides when a reply may leave. There is one store in a process,
// on the loop's thread; jobs do the slow work on the disk. Each part has a class of its own; the store
// begins and ends them, and passes on what one of them causes for the others.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/disk/data_folder.h"
#include "io/disk/earlier_run.h"
#include "io/disk/folder_load.h"
#include "io/disk/folder_watch.h"
#include "io/disk/journal_sync.h"
#include "io/disk/saves.h"
#include "io/os/loop_call.h"

namespace holdfast {

class Store {
 public:
  using Promise = DataFolder::Promise;

  // The functions of the server that the store calls, on the loop's thread.
  struct Hooks {
    std::function<void()> release_held;   // a write is done: sends the held replies that may leave
    std::function<void()> end_iteration;  // state has changed: checks the held replies again
    std::function<void(const std::string& why)> fail;  // the start failed
    std::function<void()> loaded;
    std::function<void()> working;  // a synchronous save progresses
  };

  // Locks the folder for this process, and reads the data that the constructor of the engine needs.
  static Result<std::unique_ptr<Store>> open(const Options& options);
  // The same with another disk and another clock. `options` must outlive the store.
  static Result<std::unique_ptr<Store>> open(const Options& options, std::unique_ptr<Files> files,
                                             ReadClock time);
  // What the folder says about earlier runs, for Config. Only before start().
  const EarlierRun& past() const { return *past_; }
  // For Config: the clock that relates the times in the folder to the engine's clock.
  SavedClock clock() const { return folder_.clock(); }
  // For Config: the clock that limits scripts. A script holds the loop, and with it the timer of
  // `everysec`. So each reading during a script begins a sync that is due.
  std::function<int64_t()> script_clock(std::function<int64_t()> clock_us);
  // Returns the hooks for Config. The server adds shut_down.
  StorageHooks storage_hooks();
  // Does the saves that SHUTDOWN requires before the stop. Returns the error to reply, or an empty string.
  std::string prepare_stop(ShutdownMode mode);

  // Begins to read the folder. Then calls hooks.loaded or hooks.fail. Until then the engine replies
  // -LOADING.
  void start(Engine& engine, uv_loop_t* loop, Hooks hooks);

  // The end of a loop iteration: commit() writes the records of the engine. settle() follows after the
  // server holds the replies that may_reply() forbids, and begins the writes that they wait for.
  void commit() {
    if (is_running()) folder_.commit();
  }
  void settle(const Now& now);
  // How much of the folder the start has read, in percent. Empty after the load.
  std::optional<uint64_t> loaded_percent() const;
  // Whether all replies may leave: the data that they promise is as safe as the settings require.
  bool may_reply(const Now& now) const { return !loaded_ || folder_.may_reply(now); }
  // What the replies made since the last commit() promise. Once it is kept, they may leave, although later
  // replies may not: else clients whose grants need one write of meta after another would hold up all.
  Promise promise(const Now& now) const { return folder_.promise(now); }
  bool is_kept(const Promise& promise, const Now& now) const { return folder_.is_kept(promise, now); }
  // Whether the replies since the last commit() may leave although may_reply() is false: the disk fails,
  // and nothing was granted. Then a crash may restore a hold that was released, if the disk lacks the
  // release.
  bool may_reply_to_others() const { return folder_.may_reply_to_others(); }

  // How long the syncs of the journal took, since the start.
  DurationHistogram sync_times() const;

  // The work of each second: checks the folder, retries failed writes, begins a snapshot that is due.
  // Called by a timer.
  void every_second();
  // Syncs the journal if `appendfsync` is `everysec`. Called by a timer, every `fsync-interval`.
  void sync_if_due() { sync_->sync_if_due(); }

  // The last call: no callback follows. A failure says what data could not be written, and why.
  Result<Done> stop();
  // After stop(): whether it wrote all that held replies promise.
  bool all_kept() const { return all_kept_; }

 private:
  Store(std::unique_ptr<Files> files, const Options& options, ReadClock time);
  Result<Done> prepare();
  Result<Done> begin_meta(const Now& now, const std::string& kernel);
  void end_load(Result<Done> done);
  bool is_running() const { return loaded_ && !stopped_; }
  void keep_meta_ahead(const Now& now);
  void end_write();
  void end_save(bool in_folder);
  std::string save_now();
  std::string start_backup(ConnId client);
  Result<Done> keep_all();
  Result<Done> end_meta();

  // store_facts.cc
  std::vector<std::pair<std::string, std::string>> facts() const;

  DataFolder folder_;
  std::optional<EarlierRun> past_;  // until start()
  Hooks hooks_;
  std::unique_ptr<FolderLoad> load_;  // null before and after the load
  Saves saves_;
  FolderWatch watch_;
  std::optional<JournalSync> sync_;   // from start() to stop()
  std::optional<TimerCall> seconds_;  // the same
  bool loaded_ = false;
  bool keep_on_stop_ = true;  // SHUTDOWN NOSAVE
  bool stopped_ = false;
  bool all_kept_ = true;
};

}  // namespace holdfast
