// Compresses and writes a snapshot.
#include "io/disk/snapshot_writer.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/checksum.h"
#include "core/codec/rdb_writer.h"
#include "io/os/jobs.h"

namespace holdfast {

// The state that the jobs use. One job at a time uses it, and abandon() concurrently with that job.
class SnapshotWriter::Sink {
 public:
  Sink(Files& files, int level) : files_(files), level_(level) {
    // Of a file that an earlier process left, a sync may have failed: see File::sync().
    static_cast<void>(files_.remove(temporary()));
    auto file = files_.create(temporary(), name());
    if (!file) {
      failure_ = file.error();
    } else {
      file_ = std::move(*file);
    }
  }
  ~Sink() { discard(); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::string_view bytes) {
    const std::scoped_lock guard(mutex_);
    if (!failure_.empty()) return;
    crc_ = crc64(crc_, bytes);
    put(bytes, false);
  }
  void finish() {
    const std::scoped_lock guard(mutex_);
    append_crc(end_, crc_);
    put(end_, true);
    if (failure_.empty()) put_in_place();
    discard();
  }
  void abandon(const std::string& why) {
    const std::scoped_lock guard(mutex_);
    if (temporary_removed_) return;
    if (failure_.empty()) note(why);
    discard();
  }
  std::string failure() const {
    const std::scoped_lock guard(mutex_);
    return failure_;
  }
  uint64_t written() const { return written_; }

 private:
  std::string name() const { return level_ > 0 ? kSnapshotName : kPlainSnapshotName; }
  std::string other_name() const { return level_ > 0 ? kPlainSnapshotName : kSnapshotName; }
  std::string temporary() const { return name() + ".tmp"; }

  void begin_stream() {
    constexpr size_t kLevelBytes[] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT,
                                      ISAL_DEF_LVL3_DEFAULT};
    output_.resize(kChunkBytes);
    isal_deflate_init(&stream_);
    stream_.level = static_cast<uint32_t>(level_);
    level_memory_.resize(kLevelBytes[level_]);
    stream_.level_buf = level_memory_.data();
    stream_.level_buf_size = static_cast<uint32_t>(level_memory_.size());
    stream_.gzip_flag = IGZIP_GZIP;
  }

  void put(std::string_view bytes, bool last) {
    if (level_ == 0) return store(bytes);
    if (output_.empty()) begin_stream();
    stream_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uint32_t>(bytes.size());
    stream_.end_of_stream = last ? 1 : 0;
    do {
      stream_.next_out = output_.data();
      stream_.avail_out = static_cast<uint32_t>(output_.size());
      isal_deflate(&stream_);
      store({reinterpret_cast<const char*>(output_.data()), output_.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

  void store(std::string_view bytes) {
    if (!failure_.empty() || bytes.empty()) return;
    written_ += bytes.size();
    if (const int error = write_all(*file_, bytes); error != 0) fail("written", error);
  }

  void put_in_place() {
    if (const int error = file_->sync(); error != 0) return fail("synced", error);
    // The name of the following journal must be on disk first: a snapshot without its journal counts as
    // damage.
    if (Result<Done> done = files_.sync_folder(); !done) return note(done.error());
    if (Result<Done> done = files_.rename(temporary(), name()); !done) return note(done.error());
    temporary_removed_ = true;
    if (Result<Done> done = files_.sync_folder(); !done) return note(done.error());
    if (Result<Done> done = files_.remove(other_name()); !done) return note(done.error());
  }

  // Removes the temporary file, unless it is in place or was removed before.
  void discard() {
    if (std::exchange(temporary_removed_, true)) return;
    file_.reset();
    static_cast<void>(files_.remove(temporary()));
  }

  void fail(std::string_view what, int error) {
    note(fmt::format("{}/{} cannot be {}: {}", files_.path(), temporary(), what, std::strerror(error)));
  }
  void note(const std::string& why) { failure_ = why; }

  Files& files_;
  int level_;
  mutable std::mutex mutex_;
  std::vector<uint8_t> output_;
  std::vector<uint8_t> level_memory_;
  isal_zstream stream_{};
  std::unique_ptr<File> file_;
  uint64_t crc_ = 0;
  std::string end_;                    // the checksum, as the file contains it
  std::atomic<uint64_t> written_ = 0;  // read by the loop while a job runs
  bool temporary_removed_ = false;
  std::string failure_;
};

SnapshotWriter::SnapshotWriter(Files& files, uv_loop_t* loop, int level)
    : loop_(loop),
      name_(level > 0 ? kSnapshotName : kPlainSnapshotName),
      sink_(std::make_shared<Sink>(files, level)),
      failure_(sink_->failure()),
      self_(std::make_shared<SnapshotWriter*>(this)) {}

SnapshotWriter::~SnapshotWriter() {
  *self_ = nullptr;
  sink_->abandon("it was cancelled");
}

void SnapshotWriter::abandon(const std::string& why) {
  sink_->abandon(why);
  failure_ = sink_->failure();
}

uint64_t SnapshotWriter::written_bytes() const { return sink_->written(); }

void SnapshotWriter::add(std::string& bytes, const std::function<void()>& progress) {
  progress_ = progress;
  waiting_.push_back(std::move(bytes));
  bytes = std::string();
  if (!spare_.empty()) {
    bytes.swap(spare_.back());
    spare_.pop_back();
  }
  bytes.reserve(kRoomBytes);
  pump();
}

void SnapshotWriter::finish(const std::function<void()>& done) {
  done_ = done;
  pump();
}

// One job at a time writes all waiting chunks. After a failure the job reports it, and drops the rest. The
// last job frees the spare memory too, because that takes time.
void SnapshotWriter::pump() {
  if (busy_) return;
  busy_ = true;
  const bool last = done_ != nullptr;
  auto chunks = std::make_shared<std::vector<std::string>>(std::exchange(waiting_, {}));
  auto spare = std::make_shared<std::vector<std::string>>();
  if (last) spare->swap(spare_);
  run_job(
      loop_,
      [sink = sink_, chunks, spare, last] {
        for (std::string& bytes : *chunks) {
          sink->write(bytes);
          bytes.clear();
        }
        if (!last) return;
        sink->finish();
        chunks->clear();
        spare->clear();
      },
      [self = self_, chunks, last] {
        if (*self != nullptr) (*self)->job_done(last, std::move(*chunks));
      });
}

void SnapshotWriter::job_done(bool last, std::vector<std::string> spare) {
  busy_ = false;
  for (std::string& bytes : spare) spare_.push_back(std::move(bytes));
  failure_ = sink_->failure();
  if (last) return done_();
  if (done_ != nullptr || !waiting_.empty()) pump();
  progress_();
}

void SnapshotWriter::add_now(std::string& bytes) {
  sink_->write(bytes);
  failure_ = sink_->failure();
  bytes.clear();
}

void SnapshotWriter::finish_now() {
  sink_->finish();
  failure_ = sink_->failure();
}

}  // namespace holdfast
