// The options `save`, `autosave`, `write-threshold` and `journal-max-size`.
#include "io/disk/save_schedule.h"

#include <sstream>

namespace holdfast {

namespace {

constexpr int64_t kRetryMs = 5000;

}  // namespace

void SaveSchedule::end(const SaveOutcome& outcome) {
  failure_ = outcome.failure;
  took_ms_ = outcome.took_ms;
  if (!failure_.empty()) return;
  saved_bytes_ = outcome.bytes;
  saved_at_ms_ = outcome.began_ms;
  saved_frames_ = outcome.frames;
  failed_at_ms_ = 0;
}

bool SaveSchedule::may_retry(int64_t now_ms) const {
  return failed_at_ms_ == 0 || now_ms - failed_at_ms_ >= kRetryMs;
}

// `save` is pairs of seconds and changes, as in Redis.
bool SaveSchedule::is_due(int64_t now_ms, uint64_t frames, uint64_t journal_bytes) const {
  if (!may_retry(now_ms)) return false;
  if (options_.journal_max > 0 && journal_bytes > options_.journal_max) return true;
  const uint64_t changed = unsaved(frames);
  if (changed == 0) return false;
  if (options_.write_threshold > 0 && changed >= options_.write_threshold) return true;
  const int64_t since_ms = now_ms - saved_at_ms_;
  if (options_.autosave_ms > 0 && since_ms >= static_cast<int64_t>(options_.autosave_ms)) return true;
  std::istringstream pairs(options_.save);
  for (uint64_t seconds = 0, changes = 0; pairs >> seconds >> changes;) {
    if (changed >= changes && since_ms >= static_cast<int64_t>(seconds) * 1000) return true;
  }
  return false;
}

}  // namespace holdfast
