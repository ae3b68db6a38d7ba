// The saves of a folder, one at a time: begins each when it may, and handles its end. The backups that
// clients read come from its snapshots.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/disk/backups.h"
#include "io/disk/data_folder.h"
#include "io/disk/save.h"
#include "io/disk/save_schedule.h"

namespace holdfast {

class Saves {
 public:
  struct Hooks {
    std::function<void()> requested;  // begin_if_due() is to be called soon
    std::function<void()> working;    // a synchronous save progresses
    // A save has ended: with this failure, or with a snapshot. `in_folder`: the folder is still the one in
    // which it began.
    std::function<void(bool in_folder)> ended;
  };

  Saves(DataFolder& folder, Hooks hooks)
      : folder_(folder), hooks_(std::move(hooks)), schedule_(folder.options()) {}

  // The process has started.
  void start() { schedule_.start(wall_ms()); }
  // A snapshot has to begin soon: now, or after the one in progress.
  void request();
  // Begins a save if one was requested, or is due by the options. `must`: or in any case.
  void begin_if_due(bool must);
  // Each returns an error to reply, or an empty string.
  std::string begin();
  std::string save_now();  // synchronously
  // Ends the save in progress without a snapshot, so that another can begin at once.
  void abandon(const std::string& why);
  // The folder was replaced: the snapshot in progress is worth nothing. The next one may begin at once.
  void leave_folder();
  void retry_at_once() { schedule_.retry_at_once(); }
  bool may_retry() const { return schedule_.may_retry(wall_ms()); }
  // The engine ends before this object does.
  void stop();

  // The first snapshot that begins from now on is the backup of the client. Returns the error to reply.
  std::string start_backup(ConnId client);
  BackupBytes read_backup(ConnId client);
  // Ends the backups whose clients are gone or ask for nothing.
  void end_backups();

  const Save* in_progress() const { return save_.get(); }
  const SaveSchedule& schedule() const { return schedule_; }
  // Changes that are in no snapshot, and those that are not in the one in progress either.
  uint64_t unsaved() const { return schedule_.unsaved(folder_.frames()); }
  uint64_t changes() const { return save_ == nullptr ? unsaved() : folder_.frames() - save_->frames(); }

 private:
  std::string refuse(const std::string& why);
  void end();
  void log_end(const SaveOutcome& outcome) const;
  void offer_to_backups();
  int64_t wall_ms() const { return folder_.now().wall_us / 1000; }

  DataFolder& folder_;
  Hooks hooks_;
  SaveSchedule schedule_;
  std::unique_ptr<Save> save_;  // null: none is in progress
  uint64_t begun_ = 0;          // so far
  Backups backups_;
};

}  // namespace holdfast
