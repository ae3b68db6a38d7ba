// The data folder of a running server: what it reads at the start, writes at the end of each turn, and
// saves in the background. Decides when a reply may leave. One for a process, on the loop's thread; the
// disk's time is spent in jobs.
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
#include "io/disk/journal_writer.h"
#include "io/disk/meta_keeper.h"
#include "io/disk/recovery.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/clock.h"
#include "io/os/files.h"

namespace holdfast {

class Store {
 public:
  // What the store asks of the server, on the loop's thread.
  struct Hooks {
    std::function<void()> mark_held;     // what is held now may leave when the sync that begins is done
    std::function<void()> release_held;  // that sync is done
    std::function<void()> end_turn;      // something has changed: look again at what is held
    std::function<void(const std::string& why)> fail;  // the start has failed
    std::function<void()> loaded;
  };

  // Takes the folder for this process alone, and reads what the engine has to know before it is made.
  static Result<std::unique_ptr<Store>> open(const Options& options);
  // The same on another disk and by another clock. `options` must outlive the store.
  static Result<std::unique_ptr<Store>> open(const Options& options, std::unique_ptr<Files> files,
                                             ReadClock time);
  // No token at or below it was ever issued.
  uint64_t token_floor() const { return token_floor_; }
  // Nor of these keys at or below theirs.
  std::vector<AheadToken> tokens_ahead() const {
    return found_ ? found_->tokens_ahead : std::vector<AheadToken>{};
  }
  // For Config: what times in the folder are read by.
  SavedClock clock() const { return {clock_id_, first_ahead_ms_}; }
  // For Config; shut_down is the server's.
  StorageHooks door();
  // What SHUTDOWN asks for beside the stop itself. An error to answer, or nothing.
  std::string prepare_stop(ShutdownMode mode);

  // Begins to read the folder; hooks.loaded or hooks.fail follows. Until then the engine says that it
  // loads.
  void start(Engine& engine, uv_loop_t* loop, Hooks hooks);

  // The end of a turn: writes what the engine has recorded; then, once the server holds what may_reply()
  // keeps back, sees to it that it can leave.
  void commit(const Now& now);
  void settle();
  // Whether all that has been answered may leave: it is as safe as the settings promise.
  bool may_reply(const Now& now) const;
  // Whether what has been answered since the last commit() may leave even so: the disk fails, and nothing
  // was granted. Of what was released a crash may bring back what the disk has not taken by then.
  bool may_reply_to_others() const;

  // What is done once a second: looks after the folder, retries what failed, begins a snapshot that is due.
  // A timer calls it.
  void every_second();
  // Syncs the journal with `appendfsync everysec`. A timer calls it, every `fsync-interval`.
  void sync_if_due();

  // The last act: no callback comes any more. A failure says what could not be kept, and why.
  Result<Done> stop();

 private:
  Store(std::unique_ptr<Files> files, const Options& options, ReadClock time);
  Result<Done> prepare();
  void close_handles();

  // store_load.cc
  static void on_load(uv_idle_t* idle);
  Result<bool> load_step();
  void log_progress(int64_t now_ms);
  Result<Done> finish_load();
  void log_clock(const Now& now) const;
  void recover_if_needed(const Now& now);
  Result<Done> check_end();

  // store_save.cc
  static void on_save(uv_idle_t* idle) noexcept;
  std::string begin_save();
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
  void end_rebuild();

  static void on_second(uv_timer_t* timer) noexcept;
  static void on_sync_timer(uv_timer_t* timer) noexcept;
  void sync();
  void update_service();
  void keep_meta_ahead(const Now& now);
  bool is_recovering(const Now& now) const;
  Result<Done> keep_all();
  Result<Done> end_meta();
  Horizon holds_to_keep(const Now& now) const;
  Horizon horizon_found(const Now& now) const;
  bool is_clock_found() const;
  bool journals() const { return options_.appendonly == "yes"; }
  bool always() const { return journals() && options_.appendfsync == "always"; }
  std::vector<std::pair<std::string, std::string>> facts() const;

  const Options& options_;
  ReadClock read_clock_;
  std::unique_ptr<Files> files_;
  MetaKeeper meta_;
  std::optional<JournalWriter> journal_;
  std::optional<Meta> found_;  // the meta of the run before
  bool lossless_ = true;  // the run before has lost nothing: its kernel still runs, or it stopped in order
  uint64_t token_floor_ = 0;
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
  int64_t load_began_ms_ = 0;
  int64_t load_told_ms_ = 0;  // when the log was last told how far it is
  std::unique_ptr<Snapshot> snapshot_;
  std::unique_ptr<SnapshotWriter> writer_;
  bool granted_ = false;  // something, before the last commit()
  bool snapshot_walked_ = false;
  bool save_wanted_ = false;
  uint64_t snapshot_journal_ = 0;  // the journal that begins with the snapshot under way
  uint64_t snapshot_generation_ = 0;
  uint64_t snapshot_folder_ = 0;
  uint64_t next_journal_ = 1;
  uint64_t folder_ = 0;  // how often the folder was replaced
  // What is to be done in a folder that was replaced: take it, then save everything there.
  enum class Rebuild { kNone, kClaim, kSave } rebuild_ = Rebuild::kNone;
  std::string folder_failure_;
  std::string save_failure_;  // of the last save; empty: it succeeded
  int64_t save_began_ms_ = 0;
  int64_t saved_at_ms_ = 0;  // when the last save that succeeded ended, or the start
  int64_t last_save_took_ms_ = -1;
  int64_t save_failed_at_ms_ = 0;
  uint64_t changes_ = 0;         // frames since the last save began
  uint64_t changes_before_ = 0;  // those that a save under way is about
  uint64_t saved_bytes_ = 0;
  bool keep_on_stop_ = true;  // SHUTDOWN NOSAVE
  bool stopped_ = false;
};

}  // namespace holdfast
