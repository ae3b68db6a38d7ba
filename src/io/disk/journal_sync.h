// When the journal is synced: at the end of an iteration (`always`), or by time (`everysec`), also while a
// script holds the loop, and with it the timer.
#pragma once

#include <functional>
#include <utility>

#include "core/base/types.h"
#include "io/disk/data_folder.h"
#include "io/os/loop_call.h"

namespace holdfast {

class JournalSync {
 public:
  // `done` is called on the loop after each sync.
  JournalSync(DataFolder& folder, std::function<void()> done)
      : folder_(folder), done_(std::move(done)), timer_(folder.loop(), [this] { sync_if_due(); }) {}

  // Begins to call sync_if_due(), every `fsync-interval`.
  void start() {
    const uint64_t interval_ms = folder_.options().fsync_interval_ms;
    timer_.start(interval_ms, interval_ms);
  }
  // The end of an iteration.
  void settle() {
    if (folder_.always() && folder_.journal().needs_sync()) sync();
  }
  // Syncs the journal if `appendfsync` is `everysec`.
  void sync_if_due();
  // Called often during a script. To begin a sync is safe in the middle of it: a job gets the files, and
  // the loop handles its end.
  void look_in_script();

 private:
  void sync() { folder_.journal().start_sync(done_); }

  DataFolder& folder_;
  std::function<void()> done_;
  TimerCall timer_;
  TimeMs looked_at_{0};  // the last call of sync_if_due()
};

}  // namespace holdfast
