// Syncs by time.
#include "io/disk/journal_sync.h"

namespace holdfast {

void JournalSync::sync_if_due() {
  looked_at_ = folder_.now().mono;
  if (folder_.journals() && folder_.options().appendfsync == "everysec" && folder_.journal().needs_sync())
    sync();
}

void JournalSync::look_in_script() {
  if (folder_.engine().at_rest() || !folder_.journals() || !folder_.journal().needs_sync()) return;
  const DurationMs interval{static_cast<int64_t>(folder_.options().fsync_interval_ms)};
  if (is_due(looked_at_ + interval, folder_.now().mono)) sync_if_due();
}

}  // namespace holdfast
