// Writes and syncs the journal, and handles failures of both.
#include "io/disk/journal_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/codec/journal_frame.h"
#include "io/os/log.h"

namespace holdfast {

std::string journal_name(uint64_t number) { return fmt::format("journal.{}", number); }

void JournalWriter::fail(std::string_view what, int error) {
  std::string why = fmt::format("{} {} failed: {}", what, journal_name(number_), std::strerror(error));
  if (why != failure_) {
    log_line(LogLevel::kWarning,
             fmt::format("the journal: {}; no new locks are granted until it works again", why));
  }
  failure_ = std::move(why);
}

void JournalWriter::stay_closed(uint64_t next_sequence, const std::string& why) {
  leave_folder();
  next_sequence_ = next_sequence;
  failed_ = generation_;
  failure_ = why;
}

Result<Done> JournalWriter::resume(uint64_t number, uint64_t next_sequence) {
  auto file = files_.append(journal_name(number));
  if (!file) return Failure{file.error()};
  auto size = (*file)->size();
  if (!size) return Failure{size.error()};
  file_ = std::move(*file);
  number_ = number;
  bytes_ = *size;
  written_ += *size;  // a killed process may not have synced it
  named_ = ++generation_;
  next_sequence_ = next_sequence;
  return Done{};
}

Result<Done> JournalWriter::begin(uint64_t number) {
  if (!unwritten_.empty() && !lacks_base()) return Failure{failure_};
  // A crash of the machine can lose the name of a journal that was never synced. It must not lose that of
  // this journal and keep that of the next one.
  if (named_ < generation_ && !left_folder_) {
    if (!files_.sync_folder())
      return Failure{fmt::format("the folder of {} cannot be synced", journal_name(number_))};
    named_ = generation_;
  }
  const std::string name = journal_name(number);
  Result<bool> existed = files_.exists(name);
  auto file = files_.create(name, "");
  if (!file) return Failure{file.error()};
  std::string head;
  // Frames that are dropped leave no gap in the sequence: a start would look for them.
  const uint64_t first = next_sequence_ - (lacks_base() ? unwritten_frames_ : 0);
  append_journal_head(head, number, first);
  if (const int error = write_all(**file, head); error != 0) {
    // The snapshot may need a file of this name, although a crash cut off its head.
    const bool is_new = existed && !*existed;
    if (is_new) static_cast<void>(files_.remove(name));
    return Failure{fmt::format("{} cannot be written: {}", name, std::strerror(error))};
  }
  if (lacks_base()) {
    written_ += unwritten_.size();
    unwritten_.clear();
    unwritten_frames_ = 0;
    next_sequence_ = first;
    left_folder_ = false;
    awaits_snapshot_ = true;
  } else if (file_ != nullptr && !failed_) {
    earlier_.push_back({generation_, std::move(file_)});
  }
  file_ = std::move(*file);
  ++generation_;
  number_ = number;
  bytes_ = head.size();
  written_ += head.size();
  return Done{};
}

bool JournalWriter::commit(std::string_view records, uint64_t most_bytes) {
  if (!records.empty()) {
    const size_t frame = begin_frame(unwritten_);
    unwritten_.append(records);
    if (records.size() <= most_bytes && end_frame(unwritten_, frame, next_sequence_)) {
      ++next_sequence_;
      ++unwritten_frames_;
    } else {
      give_up(frame);
    }
  }
  return retry();
}

// No frame can have the records: only a snapshot can. One byte stands for them in position(), so that the
// replies that rely on them wait for it. The gap in the sequence tells a start after a crash that the later
// frames have no base.
void JournalWriter::give_up(size_t frame) {
  unwritten_.resize(frame + 1);
  unwritten_.shrink_to_fit();
  fail("more than 4 GiB of changes at once: writing", EFBIG);
  stay_closed(next_sequence_ + 1, failure_);
}

bool JournalWriter::retry() {
  if (unwritten_.empty()) return true;
  if (lacks_base()) return false;
  if (const int error = write_all(*file_, unwritten_); error != 0) {
    fail("writing", error);
    // Bytes after a partial frame could never be read.
    if (const int cut = file_->truncate(bytes_); cut != 0) fail("cutting", cut);
    return false;
  }
  bytes_ += unwritten_.size();
  written_ += unwritten_.size();
  unwritten_.clear();
  if (unwritten_.capacity() > kKeptBytes) unwritten_.shrink_to_fit();
  unwritten_frames_ = 0;
  if (!failed_) failure_.clear();
  return true;
}

std::shared_ptr<JournalWriter::Sync> JournalWriter::make_sync() {
  auto sync = std::make_shared<Sync>();
  sync->unnamed = named_ < generation_;
  sync->files = std::exchange(earlier_, {});
  sync->files.push_back({generation_, file_});
  return sync;
}

// Runs in a job, or on the loop's thread at a stop.
void JournalWriter::run(Sync& sync) {
  const std::scoped_lock guard(sync.mutex);
  if (std::exchange(sync.done, true)) return;
  const uint64_t began_ns = uv_hrtime();
  // A crash loses a file and its data if its name is not on disk.
  const bool named = !sync.unnamed || files_.sync_folder();
  for (Generation& n : sync.files) {
    n.error = named ? n.file->sync() : EIO;
    n.file.reset();  // in the job, because closing a removed file is slow
  }
  sync.took_ns = uv_hrtime() - began_ns;
}

void JournalWriter::note_errors(const Sync& sync) {
  for (const Generation& n : sync.files) {
    if (n.error == 0) named_ = std::max(named_, n.generation);
    if (n.error == 0 || n.generation < needless_before_) continue;
    failed_ = std::max(failed_.value_or(0), n.generation);
    fail("syncing", n.error);
  }
}

void JournalWriter::start_sync(std::function<void()> done) {
  syncing_ = true;
  ++syncs_;
  syncing_to_ = written_;
  sync_ = make_sync();
  run_job(
      loop_, [this, sync = sync_] { run(*sync); },
      [this, sync = sync_, upto = syncing_to_, done = std::move(done)] {
        syncing_ = false;
        note_errors(*sync);
        sync_times_.record_us(sync->took_ns / 1000);
        if (!failed_) synced_ = upto;
        done();
      });
}

void JournalWriter::distrust() {
  failed_ = generation_;
  failure_ = fmt::format("{} may not be on disk", journal_name(number_));
}

void JournalWriter::leave_folder() {
  left_folder_ = true;
  earlier_.clear();
  needless_before_ = generation_ + 1;
}

void JournalWriter::forget_before(uint64_t generation) {
  needless_before_ = generation;
  const bool recovered = std::exchange(awaits_snapshot_, false) || failed_;
  std::erase_if(earlier_, [generation](const Generation& n) { return n.generation < generation; });
  // The journal after the snapshot may have failed meanwhile.
  if (!recovered || failed_ >= generation) return;
  failed_.reset();
  failure_.clear();
  retry();
}

bool JournalWriter::sync_now() {
  if (!retry() || lacks_base()) return false;
  if (syncing_) {
    run(*sync_);
    note_errors(*sync_);
  }
  const std::shared_ptr<Sync> last = make_sync();
  run(*last);
  note_errors(*last);
  if (failed_) return false;
  synced_ = written_;
  return true;
}

}  // namespace holdfast
