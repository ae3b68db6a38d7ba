// The file of a snapshot: bytes of the RDB file go in on the loop, are compressed and written by jobs, one
// after the other, and take the place of the old snapshot when all of it is on disk.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/os/files.h"

namespace holdfast {

// Names in the data folder: of the compressed form, and of the plain one.
inline constexpr const char* kSnapshotName = "dump.rdb.gz";
inline constexpr const char* kPlainSnapshotName = "dump.rdb";

class SnapshotWriter {
 public:
  // How much may wait to be written before whoever makes the bytes has to wait too.
  static constexpr size_t kMaxWaitingChunks = 8;
  static constexpr size_t kChunkBytes = size_t{1} << 20U;

  // `level`: of compression, 0 for none.
  SnapshotWriter(Files& files, uv_loop_t* loop, int level);
  // What is not in place by now never will be. Waits for a job that writes.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Takes a chunk of about kChunkBytes, and leaves an empty string with room for the next. `progress` is
  // called on the loop when some have been written.
  void add(std::string& bytes, const std::function<void()>& progress);
  // That was all: the checksum is added, and the file put in place. `done` is called on the loop.
  void finish(const std::function<void()>& done);
  // The same without the loop, for SAVE and a stop.
  void add_now(std::string& bytes);
  void finish_now();

  // The snapshot fails for this reason; what is added from now on is dropped. Waits for a job that writes,
  // which may have put it in place. finish() has to follow as ever.
  void abandon(const std::string& why);

  bool is_full() const { return waiting_.size() >= kMaxWaitingChunks; }
  // Why there will be no snapshot; empty: all is well so far.
  const std::string& failure() const { return failure_; }
  uint64_t written_bytes() const;

 private:
  class Sink;
  void pump();
  void job_done(bool last, std::vector<std::string> spare);

  uv_loop_t* loop_;
  std::shared_ptr<Sink> sink_;
  std::vector<std::string> waiting_;
  std::vector<std::string> spare_;  // written, to be filled again: fresh memory takes the loop's time
  bool busy_ = false;               // a job runs
  std::function<void()> progress_;
  std::function<void()> done_;  // set: nothing more comes
  std::string failure_;
  std::shared_ptr<SnapshotWriter*> self_;  // for jobs: null once this is gone
};

}  // namespace holdfast
