// Writes the file of a snapshot. The loop adds bytes of the RDB file; jobs compress and write them, one job
// at a time. The new file replaces the old snapshot when all of it is on disk.
#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/os/files.h"

namespace holdfast {

// Names in the data folder: the compressed form, and the plain form.
inline constexpr const char* kSnapshotName = "dump.rdb.gz";
inline constexpr const char* kPlainSnapshotName = "dump.rdb";
// The snapshot of `holdfast restore`, until the restore is complete. A server refuses a folder that has it.
inline constexpr const char* kRestoreName = "restore.tmp";

class SnapshotWriter {
 public:
  // Limits the chunks that wait to be written. Beyond it the producer of the bytes waits: see is_full().
  static constexpr size_t kMaxWaitingChunks = 8;
  static constexpr size_t kChunkBytes = size_t{1} << 20U;
  // Of a chunk: a step of the snapshot may write 128 KiB beyond kChunkBytes, or one longer string.
  static constexpr size_t kRoomBytes = kChunkBytes + (size_t{256} << 10U);

  // `level`: compression level, 0 for none.
  SnapshotWriter(Files& files, uv_loop_t* loop, int level);
  // Discards the snapshot unless it is in place. Waits for a running job.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Takes a chunk of about kChunkBytes, and replaces it by an empty string with capacity for the next.
  // `progress` is called on the loop after a job has written some chunks.
  void add(std::string& bytes, const std::function<void()>& progress);
  // Ends the snapshot: adds the checksum, and puts the file in place. `done` is called on the loop.
  void finish(const std::function<void()>& done);
  // The synchronous forms of add() and finish(), for SAVE and a stop.
  void add_now(std::string& bytes);
  void finish_now();

  // Fails the snapshot for this reason, and drops all bytes added later. Waits for a running job, which may
  // have put the file in place. finish() must follow nevertheless.
  void abandon(const std::string& why);

  // The name of the file in its place.
  const char* name() const { return name_; }
  bool is_full() const { return waiting_.size() >= kMaxWaitingChunks; }
  // Why the snapshot failed. Empty if it has not failed so far.
  const std::string& failure() const { return failure_; }
  uint64_t written_bytes() const;

 private:
  class Sink;
  void pump();
  void job_done(bool last, std::vector<std::string> spare);

  uv_loop_t* loop_;
  const char* name_;
  std::shared_ptr<Sink> sink_;
  std::vector<std::string> waiting_;
  std::vector<std::string> spare_;  // written chunks, to be reused: fresh memory costs the loop time
  bool busy_ = false;               // a job runs
  std::function<void()> progress_;
  std::function<void()> done_;  // set after the last add()
  std::string failure_;
  std::shared_ptr<SnapshotWriter*> self_;  // for jobs: null after the destructor
};

}  // namespace holdfast
