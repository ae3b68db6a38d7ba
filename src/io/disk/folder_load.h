// The load of the folder at the start, a few milliseconds at a time, from the first file until the engine
// has the data and the journal is open. Meanwhile clients get -LOADING replies.
#pragma once

#include <cstdint>
#include <functional>

#include "io/disk/data_folder.h"
#include "io/disk/earlier_run.h"
#include "io/disk/recovery.h"
#include "io/os/loop_call.h"

namespace holdfast {

class FolderLoad {
 public:
  // Begins at once. Calls `done` on the loop, which may destroy the load.
  FolderLoad(DataFolder& folder, EarlierRun past, std::function<void(Result<Done>)> done);
  FolderLoad(const FolderLoad&) = delete;
  FolderLoad& operator=(const FolderLoad&) = delete;

  // How much of the folder it has read, in percent.
  uint64_t percent() const;
  int64_t began_ms() const { return began_ms_; }  // by the engine's clock
  uint64_t total_bytes() const { return recovery_.total_bytes(); }
  uint64_t read_bytes() const { return recovery_.read_bytes(); }

 private:
  void continue_reading();
  Result<bool> step();
  void log_progress(int64_t now_ms);
  Result<Done> finish();
  void log_loaded(const Now& now) const;
  void log_clock(const Now& now) const;
  void recover_if_needed(const Now& now);
  Result<Done> check_end(Horizon horizon);
  void open_journal();

  DataFolder& folder_;
  EarlierRun past_;
  Recovery recovery_;
  int64_t began_ms_;
  int64_t logged_ms_;  // time of the last progress line in the log
  std::function<void(Result<Done>)> done_;
  IdleCall idle_;
};

// On a full disk a start serves the data that it can read, and leaves the folder as it is until meta is
// written: the text on disk may say that all data was synced by the last stop.
void warn_of_no_grants(const std::string& why);

}  // namespace holdfast
