// A save in progress: walks over the state of one moment in small steps between the requests, and writes
// the file of the snapshot. All later changes go to a new journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/persist/snapshot.h"
#include "io/disk/data_folder.h"
#include "io/disk/save_schedule.h"
#include "io/disk/snapshot_writer.h"
#include "io/os/loop_call.h"

namespace holdfast {

class Save {
 public:
  // Begins at once. The journal of this number began with this moment. `ended` is called on the loop, and
  // may destroy the save; not after run_to_end(), abandon() or stop().
  Save(DataFolder& folder, const Now& now, uint64_t journal, std::function<void()> ended);
  Save(const Save&) = delete;
  Save& operator=(const Save&) = delete;

  // Saves the rest synchronously. `working` is called often.
  void run_to_end(const std::function<void()>& working);
  // Ends it without a snapshot, so that another can begin. Takes the time of a walk over all keys.
  void abandon(const std::string& why);
  // The snapshot cannot succeed any more. The walk goes on to its end: the next one can begin only when
  // every key was passed.
  void fail(const std::string& why) { writer_.abandon(why); }
  // The engine ends before this object does.
  void stop();

  // After the end: the outcome, and what follows for the journals if the snapshot is in place.
  SaveOutcome outcome() const;
  void drop_earlier_journals();
  const char* name() const { return writer_.name(); }

  // Whether the folder is still the one in which it began.
  bool is_in_folder() const { return reopened_ == folder_.reopened(); }
  int64_t began_ms() const { return began_ms_; }
  uint64_t frames() const { return frames_; }  // those that the snapshot contains
  uint64_t keys() const { return snapshot_ == nullptr ? 0 : snapshot_->keys(); }
  uint64_t saved_keys() const { return snapshot_ == nullptr ? 0 : snapshot_->saved(); }

 private:
  void step();

  DataFolder& folder_;
  const int64_t began_ms_;
  const uint64_t journal_;
  const uint64_t generation_;  // of that journal
  const uint64_t reopened_;
  const uint64_t frames_;
  std::unique_ptr<Snapshot> snapshot_;  // null after stop()
  SnapshotWriter writer_;
  bool walked_ = false;
  std::function<void()> ended_;
  std::optional<IdleCall> idle_;
};

}  // namespace holdfast
