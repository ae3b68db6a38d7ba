// The data folder of a running server: reads it at the start, writes it at the end of each loop iteration,
// and saves snapshots in the background. Decides when a reply may leave. There is one store in a process,
// on the loop's thread; jobs do the slow work on the disk.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/engine.h"
#include "core/persist/snapshot.h"
#include "io/config/options.h"
#include "io/disk/backups.h"
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/disk/recovery.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/clock.h"
#include "io/os/files.h"

namespace holdfast {

class Store {
 public:
  // The functions of the server that the store calls, on the loop's thread.
  struct Hooks {
    std::function<void()> release_held;  // a write is done: sends the held replies that may leave
    std::function<void()> end_turn;      // state has changed: checks the held replies again
    std::function<void(const std::string& why)> fail;  // the start failed
    std::function<void()> loaded;
    std::function<void()> working;  // a synchronous save progresses
  };

  // Locks the folder for this process, and reads the data that the constructor of the engine needs.
  static Result<std::unique_ptr<Store>> open(const Options& options);
  // The same with another disk and another clock. `options` must outlive the store.
  static Result<std::unique_ptr<Store>> open(const Options& options, std::unique_ptr<Files> files,
                                             ReadClock time);
  // No earlier run issued a token above it, except for the keys of tokens_ahead().
  uint64_t token_floor() const { return token_floor_; }
  // Keys with tokens ahead of the floor: for each key the largest token that earlier runs may have issued.
  const std::vector<AheadToken>& tokens_ahead() const { return tokens_ahead_; }
  // For Config: the clock that relates the times in the folder to the engine's clock.
  SavedClock clock() const { return {clock_id_, first_ahead_ms_}; }
  // For Config: the clock that limits scripts. A script holds the loop, and with it the timer of
  // `everysec`. So each reading during a script begins a sync that is due.
  std::function<int64_t()> script_clock(std::function<int64_t()> clock_us);
  // Returns the hooks for Config. The server adds shut_down.
  StorageHooks door();
  // Does the saves that SHUTDOWN requires before the stop. Returns the error to reply, or an empty string.
  std::string prepare_stop(ShutdownMode mode);

  // Begins to read the folder. Then calls hooks.loaded or hooks.fail. Until then the engine replies
  // -LOADING.
  void start(Engine& engine, uv_loop_t* loop, Hooks hooks);

  // What the replies of one loop iteration promise: the data that must be on disk before they leave.
  struct Promise {
    uint64_t journal = 0;  // a position of the journal
    Issued meta;
    // The numbers of the writes that bring it to the disk. Replies with equal numbers wait equally long.
    uint64_t journal_write = 0;
    uint64_t meta_write = 0;
  };

  // The end of a loop iteration: commit() writes the records of the engine. settle() follows after the
  // server holds the replies that may_reply() forbids, and begins the writes that they wait for.
  void commit();
  void settle(const Now& now);
  // How much of the folder the start has read, in percent. Empty after the load.
  std::optional<uint64_t> loaded_percent() const;
  // Whether all replies may leave: the data that they promise is as safe as the settings require.
  bool may_reply(const Now& now) const;
  // What the replies made since the last commit() promise. Once it is kept, they may leave, although later
  // replies may not: else clients whose grants need one write of meta after another would hold up all.
  Promise promise(const Now& now) const;
  bool is_kept(const Promise& promise, const Now& now) const;
  // Whether the replies since the last commit() may leave although may_reply() is false: the disk fails,
  // and nothing was granted. Then a crash may restore a hold that was released, if the disk lacks the
  // release.
  bool may_reply_to_others() const;

  // How long the syncs of the journal took, since the start.
  DurationHistogram sync_times() const { return journal_ ? journal_->sync_times() : DurationHistogram(); }

  // The work of each second: checks the folder, retries failed writes, begins a snapshot that is due.
  // Called by a timer.
  void every_second();
  // Syncs the journal if `appendfsync` is `everysec`. Called by a timer, every `fsync-interval`.
  void sync_if_due();

  // The last call: no callback follows. A failure says what data could not be written, and why.
  Result<Done> stop();
  // After stop(): whether it wrote all that held replies promise.
  bool all_kept() const { return all_kept_; }

 private:
  Store(std::unique_ptr<Files> files, const Options& options, ReadClock time);
  Result<Done> prepare();
  void read_tokens(const Now& now, bool unknown);
  void warn_of_no_grants(const std::string& why) const;
  void close_handles();

  // store_load.cc
  static void on_load(uv_idle_t* idle);
  Result<bool> load_step();
  void log_progress(int64_t now_ms);
  Result<Done> finish_load();
  void log_clock(const Now& now) const;
  void recover_if_needed(const Now& now);
  Result<Done> check_end(Horizon horizon);
  void open_journal();

  // store_save.cc
  static void on_save(uv_idle_t* idle) noexcept;
  void request_save();
  std::string begin_save();
  std::string refuse_save(const std::string& why);
  std::string start_backup(ConnId client);
  void offer_to_backups();
  void end_backups();
  void save_step();
  void end_save();
  bool may_retry_save(int64_t now_ms) const;
  bool save_is_due(int64_t now_ms) const;
  std::string save_now();
  void abandon_save(const std::string& why);
  uint64_t unsaved() const;
  void remove_journals_below(uint64_t number);

  // store_folder.cc
  void check_folder();
  bool enter_new_folder();
  Result<Done> claim_folder();
  void save_in_new_folder();
  std::string unsaved_folder() const;
  void end_rebuild();

  static void on_second(uv_timer_t* timer) noexcept;  // NOLINT(bugprone-exception-escape)
  static void on_sync_timer(uv_timer_t* timer) noexcept;
  void sync_in_script();
  void sync();
  std::string failure() const;
  void update_service();
  bool has_new_tokens() const;
  void end_iteration();
  void keep_meta_ahead(const Now& now);
  bool is_recovering(const Now& now) const;
  Result<Done> keep_all();
  Result<Done> end_meta();
  Horizon holds_to_keep(const Now& now) const;
  Horizon with_lost_holds(Horizon holds, const Now& now) const;
  Horizon horizon_found(const Now& now) const;
  Horizon bounded(Horizon horizon, const Now& now) const;
  Result<bool> lacks_meta();
  bool is_clock_found() const;
  bool journals() const { return options_.appendonly == "yes"; }
  bool always() const { return journals() && options_.appendfsync == "always"; }
  std::vector<std::pair<std::string, std::string>> facts() const;

  const Options& options_;
  ReadClock read_clock_;
  std::unique_ptr<Files> files_;
  MetaKeeper meta_;
  std::optional<JournalWriter> journal_;
  std::optional<Meta> found_;  // the meta of the previous run
  bool lossless_ = true;  // the previous run lost no data: its kernel still runs, or it stopped cleanly
  uint64_t token_floor_ = 0;
  std::vector<AheadToken> tokens_ahead_;
  std::string boot_id_;
  std::string clock_id_;
  int64_t first_ahead_ms_ = 0;  // see Config

  Engine* engine_ = nullptr;
  uv_loop_t* loop_ = nullptr;
  Hooks hooks_;
  uv_idle_t load_idle_;
  uv_idle_t save_idle_;
  uv_timer_t second_timer_;
  uv_timer_t sync_timer_;

  std::unique_ptr<Recovery> recovery_;
  TimeMs sync_looked_at_{0};  // the last call of sync_if_due()
  int64_t load_began_ms_ = 0;
  int64_t load_logged_ms_ = 0;  // time of the last progress line in the log
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<SnapshotWriter> writer_;
  uint64_t snapshots_ = 0;  // begun so far
  Backups backups_;
  bool granted_ = false;        // this iteration has granted a lock
  uint64_t settled_token_ = 0;  // of the tokens, at the end of the last iteration
  uint64_t settled_ahead_ = 0;
  bool all_kept_ = true;
  bool snapshot_walked_ = false;
  bool save_wanted_ = false;
  uint64_t snapshot_journal_ = 0;  // the journal that began with the unfinished snapshot
  uint64_t snapshot_generation_ = 0;
  uint64_t snapshot_folder_ = 0;
  uint64_t next_journal_ = 1;
  uint64_t folder_ = 0;  // count of replacements of the folder
  int removals_ = 0;     // jobs that remove old journals
  // The next step in a replaced folder: claim it, then save everything there.
  enum class Rebuild { kNone, kClaim, kSave } rebuild_ = Rebuild::kNone;
  std::string folder_failure_;
  std::string save_failure_;  // of the last save; empty if it succeeded
  int64_t save_began_ms_ = 0;
  int64_t saved_at_ms_ = 0;  // start of the last successful save, or of the process
  int64_t last_save_took_ms_ = -1;
  int64_t save_failed_at_ms_ = 0;
  uint64_t changes_ = 0;         // frames since the last save began
  uint64_t changes_before_ = 0;  // frames that the unfinished save covers
  uint64_t saved_bytes_ = 0;
  bool keep_on_stop_ = true;  // SHUTDOWN NOSAVE
  bool stopped_ = false;
};

}  // namespace holdfast
