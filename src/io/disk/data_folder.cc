// Commits, promises, and the availability that follows from failures of the disk.
#include "io/disk/data_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/disk/recovery.h"
#include "io/os/jobs.h"
#include "io/os/log.h"

namespace holdfast {

DataFolder::DataFolder(std::unique_ptr<Files> files, const Options& options, ReadClock read_clock)
    : options_(options), read_clock_(read_clock), files_(std::move(files)), meta_(*files_) {}

void DataFolder::start(Engine& engine, uv_loop_t* loop) {
  engine_ = &engine;
  loop_ = loop;
  meta_.set_loop(loop);
  journal_.emplace(*files_, loop);
}

Result<uint64_t> DataFolder::begin_journal() {
  if (journals()) {
    if (Result<Done> begun = journal_->begin(next_journal_); !begun) return Failure{begun.error()};
  }
  return next_journal_++;
}

void DataFolder::remove_journals_below(uint64_t number) {
  ++removals_;
  run_job(
      loop_,
      [files = files_.get(), number] {
        Result<std::vector<uint64_t>> numbers = list_journals(*files);
        if (!numbers) return;
        for (const uint64_t old : *numbers) {
          if (old < number) static_cast<void>(files->remove(journal_name(old)));
        }
      },
      [this] { --removals_; });
}

void DataFolder::commit() {
  if (const std::string_view records = engine_->journal_records(); !records.empty()) {
    ++frames_;
    grants_.note_records(*engine_);
    if (journals()) journal_->commit(records);
    engine_->clear_journal_records();
  }
  update_availability();
}

void DataFolder::keep_meta_ahead(const Now& now, const std::function<void()>& done) {
  const int64_t left_ms = std::max<int64_t>(0, (engine_->latest_deadline() - now.mono).count);
  meta_.keep_ahead(engine_->tokens(), holds_to_keep(now), left_ms, done);
}

bool DataFolder::may_reply(const Now& now) const {
  if (!meta_.covers(engine_->tokens(), holds_to_keep(now))) return false;
  if (!journals()) return true;
  if (engine_->withholds_records()) return false;
  return always() ? journal_->all_synced() : journal_->all_written();
}

bool DataFolder::may_reply_to_others() const {
  return !grants_.any(*engine_) && !engine_->availability().refusal.empty();
}

DataFolder::Promise DataFolder::promise(const Now& now) const {
  const Tokens& tokens = engine_->tokens();
  Promise promise;
  promise.meta = {tokens.largest(), tokens.ahead_serial(), holds_to_keep(now)};
  promise.meta_write = meta_.write_for(promise.meta);
  if (!journals()) return promise;
  // Records that the engine withholds are behind the present position.
  promise.journal = journal_->position() + (engine_->withholds_records() ? 1 : 0);
  const bool unwritten = !journal_->is_written(promise.journal);
  promise.journal_write = always() ? journal_->sync_for(promise.journal) : uint64_t{unwritten};
  return promise;
}

// Holds that ended since need no horizon, and no later write of meta may cover them.
bool DataFolder::is_kept(const Promise& promise, const Now& now) const {
  const Horizon holds = holds_to_keep(now);
  Issued issued = promise.meta;
  issued.holds.wall_ms = std::min(issued.holds.wall_ms, holds.wall_ms);
  issued.holds.boot_ms = std::min(issued.holds.boot_ms, holds.boot_ms);
  if (!meta_.covers(issued)) return false;
  if (!journals()) return true;
  return always() ? journal_->is_synced(promise.journal) : journal_->is_written(promise.journal);
}

// Depends on the granted holds, not on the present time: an idle server has nothing to write.
Horizon DataFolder::holds_to_keep(const Now& now) const {
  const TimeMs latest = engine_->latest_deadline();
  if (always() || options_.recovery_wait_ms == 0 || is_due(latest, now.mono)) return {};
  if (latest == kNever) return Horizon::never();
  return {now.to_wall_ms(latest), latest.count};
}

Horizon DataFolder::with_lost_holds(Horizon holds, const Now& now) const {
  if (!is_recovering(now)) return holds;
  const TimeMs until = engine_->availability().recovering_until;
  return {std::max(holds.wall_ms, now.to_wall_ms(until)), std::max(holds.boot_ms, until.count)};
}

bool DataFolder::is_recovering(const Now& now) const {
  return !is_due(engine_->availability().recovering_until, now.mono);
}

std::string DataFolder::failure() const {
  if (!unusable_.empty()) return unusable_;
  if (journals() && journal_ && !journal_->failure().empty()) return journal_->failure();
  return meta_.failure();
}

void DataFolder::update_availability() {
  std::string why = failure();
  if (!why.empty())
    why = "MISCONF persistence failed (" + why + "): no new locks are granted until it works again";
  Availability& availability = engine_->availability();
  if (availability.refusal == why) return;
  if (why.empty()) {
    log_line(LogLevel::kNotice, "persistence works again: new locks are granted");
  } else if (!unusable_.empty()) {  // the journal and meta log their failures themselves
    log_line(
        LogLevel::kWarning,
        fmt::format("persistence failed: {}; no new locks are granted until it works again", unusable_));
  }
  availability.refusal = why;
}

Result<Done> DataFolder::reopen() {
  meta_.leave_folder();  // first: a job must not write to a folder that is not claimed
  if (Result<Done> back = files_->reopen_folder(); !back) return back;
  ++reopened_;
  if (journals()) journal_->leave_folder();
  return Done{};
}

}  // namespace holdfast
