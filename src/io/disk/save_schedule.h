// When the next snapshot is due: by the options, by the size of the journal, on request. Also the outcome
// of the last one. Knows neither clock nor disk.
#pragma once

#include <cstdint>
#include <string>

#include "io/config/options.h"

namespace holdfast {

// The end of a save.
struct SaveOutcome {
  std::string failure;   // empty if the snapshot is in place
  int64_t began_ms = 0;  // by the wall clock
  int64_t took_ms = 0;
  uint64_t bytes = 0;
  uint64_t frames = 0;  // those that the snapshot contains
};

class SaveSchedule {
 public:
  explicit SaveSchedule(const Options& options) : options_(options) {}

  void start(int64_t now_ms) { saved_at_ms_ = now_ms; }
  // A snapshot has to begin as soon as it can.
  void request() { requested_ = true; }
  bool is_requested() const { return requested_; }

  // A save begins. It counts as failed until end().
  void begin(int64_t now_ms) { failed_at_ms_ = now_ms; }
  void answer_request() { requested_ = false; }
  // It could not begin.
  void refuse(const std::string& why) { failure_ = why; }
  void end(const SaveOutcome& outcome);

  // Whether some time has passed since the last failure.
  bool may_retry(int64_t now_ms) const;
  void retry_at_once() { failed_at_ms_ = 0; }
  // Whether the options require a snapshot, with so many frames and a journal of this size.
  bool is_due(int64_t now_ms, uint64_t frames, uint64_t journal_bytes) const;

  // Changes that no snapshot has.
  uint64_t unsaved(uint64_t frames) const { return frames - saved_frames_; }
  const std::string& failure() const { return failure_; }  // of the last save; empty if it succeeded
  int64_t saved_at_ms() const { return saved_at_ms_; }     // start of the last one that succeeded
  int64_t took_ms() const { return took_ms_; }             // the last one; -1: there was none
  uint64_t saved_bytes() const { return saved_bytes_; }

 private:
  const Options& options_;
  bool requested_ = false;
  int64_t saved_at_ms_ = 0;  // or the start of the process
  int64_t failed_at_ms_ = 0;
  int64_t took_ms_ = -1;
  uint64_t saved_bytes_ = 0;
  uint64_t saved_frames_ = 0;
  std::string failure_;
};

}  // namespace holdfast
