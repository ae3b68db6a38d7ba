// Snapshots: when one begins, how it advances between the requests, and the steps after it is in place.
#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "io/disk/store.h"
#include "io/os/clock.h"
#include "io/os/jobs.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

constexpr int64_t kStepUs = 200;  // for the walk over the keys, in one loop iteration
constexpr int64_t kRetryMs = 5000;

}  // namespace

// The snapshot has the state of this moment: all later changes go to a new journal.
std::string Store::begin_save() {
  if (snapshot_ != nullptr) return "ERR Background save already in progress";
  if (rebuild_ == Rebuild::kClaim) return "ERR " + folder_failure_;  // the folder is not claimed yet
  if (!engine_->at_rest() || recovery_ != nullptr) {
    save_wanted_ = true;
    return "ERR a script is running, or data is being loaded; try again";
  }
  save_wanted_ = false;
  const Now now = read_clock_();
  commit();
  save_began_ms_ = now.wall_us / 1000;
  save_failed_at_ms_ = save_began_ms_;  // reset if it succeeds
  if (Result<Done> begun = meta_.begin_again(); !begun) return refuse_save(begun.error());
  snapshot_journal_ = next_journal_;
  if (journals()) {
    if (Result<Done> begun = journal_->begin(next_journal_); !begun) return refuse_save(begun.error());
    engine_->begin_journal_file();
  }
  ++next_journal_;
  ++snapshots_;
  changes_before_ = std::exchange(changes_, 0);
  snapshot_generation_ = journals() ? journal_->generation() : 0;
  snapshot_folder_ = folder_;
  snapshot_ = std::make_unique<Snapshot>(engine_->state(), now, snapshot_journal_, journals());
  const int level = options_.compress == "yes" ? static_cast<int>(options_.compress_level) : 0;
  writer_ = std::make_unique<SnapshotWriter>(*files_, loop_, level);
  snapshot_->bytes().reserve(SnapshotWriter::kRoomBytes);  // else it copies itself as it grows
  snapshot_walked_ = false;
  uv_idle_start(&save_idle_, on_save);
  return "";
}

// A snapshot cannot begin: fails it, and the backups that wait for it.
std::string Store::refuse_save(const std::string& why) {
  backups_.fail(snapshots_ + 1, why);
  return save_failure_ = "ERR " + why;
}

void Store::on_save(uv_idle_t* idle) noexcept { static_cast<Store*>(idle->data)->save_step(); }

// Pauses while the disk is slower. Walks a failed snapshot to its end, too, because the next one can begin
// only after the walk has passed every key.
void Store::save_step() {
  const int64_t until_us = read_stopwatch_us() + kStepUs;
  while (!snapshot_walked_ && read_stopwatch_us() < until_us && !writer_->is_full()) {
    snapshot_walked_ = snapshot_->step();
    if (!writer_->failure().empty()) {
      snapshot_->bytes().clear();
    } else if (snapshot_->bytes().size() >= SnapshotWriter::kChunkBytes || snapshot_walked_) {
      writer_->add(snapshot_->bytes(), [this] {
        if (!stopped_ && snapshot_ != nullptr && !snapshot_walked_) uv_idle_start(&save_idle_, on_save);
      });
    }
  }
  if (!snapshot_walked_) {
    if (writer_->is_full()) uv_idle_stop(&save_idle_);
    return;
  }
  uv_idle_stop(&save_idle_);
  writer_->finish([this] {
    if (!stopped_) end_save();
  });
}

void Store::end_save() {
  const int64_t now_ms = read_clock_().wall_us / 1000;
  save_failure_ = writer_->failure();
  if (save_failure_.empty() && snapshot_folder_ != folder_) save_failure_ = "the data folder was replaced";
  last_save_took_ms_ = now_ms - save_began_ms_;
  if (save_failure_.empty()) {
    saved_bytes_ = writer_->written_bytes();
    saved_at_ms_ = save_began_ms_;
    save_failed_at_ms_ = 0;
    journal_->forget_before(snapshot_generation_);
    remove_journals_below(snapshot_journal_);
    log_line(LogLevel::kNotice,
             fmt::format("snapshot saved: {} keys, {} bytes, {} ms", snapshot_->saved(), saved_bytes_,
                         last_save_took_ms_),
             {{"keys", snapshot_->saved()}, {"bytes", saved_bytes_}, {"took_ms", last_save_took_ms_}});
    offer_to_backups();
  } else {
    changes_ += changes_before_;
    backups_.fail(snapshots_, save_failure_);
    log_line(LogLevel::kWarning, fmt::format("the snapshot failed: {}", save_failure_));
  }
  snapshot_.reset();
  writer_.reset();
  if (rebuild_ == Rebuild::kSave && snapshot_folder_ == folder_) {
    folder_failure_ = save_failure_;
    if (save_failure_.empty()) end_rebuild();
  }
  if (save_wanted_) request_save();  // by a backup that has to have later changes
  hooks_.end_turn();
}

// Abandons the unfinished snapshot, so that another can begin at once. Takes the time of a walk over all
// keys.
void Store::abandon_save(const std::string& why) {
  if (snapshot_ == nullptr) return;
  uv_idle_stop(&save_idle_);
  writer_->abandon(why);
  while (!snapshot_walked_) {
    snapshot_walked_ = snapshot_->step();
    snapshot_->bytes().clear();
  }
  changes_ += changes_before_;
  snapshot_.reset();
  writer_.reset();
}

// Returns the number of changes that are in no snapshot.
uint64_t Store::unsaved() const { return changes_ + (snapshot_ == nullptr ? 0 : changes_before_); }

// Removes the files in a job: the file system is slow to free a large file, which would block the loop.
void Store::remove_journals_below(uint64_t number) {
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

// Whether kRetryMs have passed since the last failure.
bool Store::may_retry_save(int64_t now_ms) const {
  return save_failed_at_ms_ == 0 || now_ms - save_failed_at_ms_ >= kRetryMs;
}

// `save` is pairs of seconds and changes, as in Redis.
bool Store::save_is_due(int64_t now_ms) const {
  if (!may_retry_save(now_ms)) return false;
  if (journals() && options_.journal_max > 0 && journal_->bytes() > options_.journal_max) return true;
  if (changes_ == 0) return false;
  if (options_.write_threshold > 0 && changes_ >= options_.write_threshold) return true;
  const int64_t since_ms = now_ms - saved_at_ms_;
  if (options_.autosave_ms > 0 && since_ms >= static_cast<int64_t>(options_.autosave_ms)) return true;
  std::istringstream pairs(options_.save);
  for (uint64_t seconds = 0, changes = 0; pairs >> seconds >> changes;) {
    if (changes_ >= changes && since_ms >= static_cast<int64_t>(seconds) * 1000) return true;
  }
  return false;
}

// Saves synchronously, for SAVE and a stop.
std::string Store::save_now() {
  if (snapshot_ != nullptr) return "ERR Background save already in progress";
  if (std::string why = begin_save(); !why.empty()) return why;
  uv_idle_stop(&save_idle_);
  while (!snapshot_->step()) {
    if (snapshot_->bytes().size() < SnapshotWriter::kChunkBytes) continue;
    writer_->add_now(snapshot_->bytes());
    if (hooks_.working) hooks_.working();
  }
  writer_->add_now(snapshot_->bytes());
  writer_->finish_now();
  end_save();
  return save_failure_.empty() ? "" : "ERR " + save_failure_;
}

std::vector<std::pair<std::string, std::string>> Store::facts() const {
  const auto n = [](auto value) { return std::to_string(value); };
  const bool loading = recovery_ != nullptr;
  const bool saves = save_failure_.empty() && folder_failure_.empty();
  const Now now = read_clock_();
  const int64_t now_ms = now.wall_us / 1000;
  std::vector<std::pair<std::string, std::string>> facts{
      {"loading", loading ? "1" : "0"},
      {"async_loading", "0"},
      {"current_cow_peak", "0"},
      {"current_save_keys_processed", n(snapshot_ == nullptr ? 0 : snapshot_->saved())},
      {"current_save_keys_total", n(snapshot_ == nullptr ? 0 : snapshot_->keys())},
      {"rdb_changes_since_last_save", n(changes_)},
      {"rdb_bgsave_in_progress", snapshot_ == nullptr && !save_wanted_ ? "0" : "1"},
      {"rdb_last_save_time", n(saved_at_ms_ / 1000)},
      {"rdb_last_bgsave_status", saves ? "ok" : "err"},
      {"rdb_last_bgsave_time_sec", n(last_save_took_ms_ < 0 ? -1 : last_save_took_ms_ / 1000)},
      {"rdb_current_bgsave_time_sec", n(snapshot_ == nullptr ? -1 : (now_ms - save_began_ms_) / 1000)},
      {"rdb_last_bgsave_bytes", n(saved_bytes_)},
      {"rdb_last_cow_size", "0"},
      {"aof_enabled", journals() ? "1" : "0"},
      {"aof_rewrite_in_progress", snapshot_ == nullptr || !journals() ? "0" : "1"},
      {"aof_last_bgrewrite_status", saves ? "ok" : "err"},
      {"aof_last_write_status", failure().empty() ? "ok" : "err"},
      {"aof_rewrite_scheduled", "0"},
      {"aof_last_rewrite_time_sec", n(last_save_took_ms_ < 0 ? -1 : last_save_took_ms_ / 1000)},
      {"aof_current_rewrite_time_sec", n(snapshot_ == nullptr ? -1 : (now_ms - save_began_ms_) / 1000)},
      {"aof_last_cow_size", "0"},
      {"module_fork_in_progress", "0"},
      {"module_fork_last_cow_size", "0"}};
  if (loading) {
    facts.emplace_back("loading_start_time", n((now_ms - (now.mono.count - load_began_ms_)) / 1000));
    facts.emplace_back("loading_total_bytes", n(recovery_->total_bytes()));
    facts.emplace_back("loading_loaded_bytes", n(recovery_->read_bytes()));
    return facts;
  }
  if (journals()) {
    facts.emplace_back("aof_current_size", n(journal_->bytes()));
    facts.emplace_back("aof_base_size", n(saved_bytes_));
    facts.emplace_back("aof_pending_rewrite", "0");
    facts.emplace_back("aof_buffer_length", "0");
    facts.emplace_back("aof_pending_bio_fsync", "0");
    facts.emplace_back("aof_delayed_fsync", "0");
    facts.emplace_back("journal_number", n(journal_->number()));
    facts.emplace_back("journal_next_sequence", n(journal_->next_sequence()));
    facts.emplace_back("journal_unsynced", journal_->all_synced() ? "0" : "1");
  }
  facts.emplace_back("folder_id", meta_.on_disk().id);
  facts.emplace_back("token_reserve", n(meta_.on_disk().token_reserve));
  facts.emplace_back("token_largest", n(engine_->largest_token()));
  facts.emplace_back("horizon_ms", n(meta_.on_disk().horizon_ms));
  facts.emplace_back("boot_id", meta_.on_disk().boot_id);
  facts.emplace_back("wall_clock_moved_ms", n(now.ahead_ms() - first_ahead_ms_));
  const int64_t left_ms = engine_->availability().recovering_until.count - now.mono.count;
  facts.emplace_back("recovering_ms", n(std::max<int64_t>(0, left_ms)));
  return facts;
}

}  // namespace holdfast
