// Handles a data folder that is removed, moved or replaced while the server runs: saves all data again in
// the folder that is now at its path. Until then the server grants nothing, and a crash makes the next
// start wait for the holds that it may have lost.
#include <fmt/format.h>

#include "io/disk/store.h"
#include "io/os/log.h"

namespace holdfast {

// Detects a replaced folder, because writes to open files still succeed in a folder that no later start
// finds.
void Store::check_folder() {
  if (files_->folder_removed() && !enter_new_folder()) return;
  if (rebuild_ == Rebuild::kClaim) {
    Result<Done> claimed = claim_folder();
    if (claimed) rebuild_ = Rebuild::kSave;
    // The snapshot may have to wait for the end of an unfinished one.
    folder_failure_ = claimed ? unsaved_folder() : claimed.error();
  }
  if (rebuild_ == Rebuild::kSave) return save_in_new_folder();
  if (rebuild_ == Rebuild::kNone) folder_failure_.clear();
}

bool Store::enter_new_folder() {
  if (removals_ > 0) {  // the job would remove files of the same names in the new folder
    folder_failure_ = "the data folder was moved or removed while old journals are removed from it";
    return false;
  }
  meta_.leave_folder();  // first: a job must not write to a folder that is not claimed
  if (Result<Done> back = files_->reopen_folder(); !back) {
    folder_failure_ = fmt::format("the data folder was moved or removed: {}", back.error());
    return false;
  }
  log_line(LogLevel::kWarning, fmt::format("{} was replaced", files_->path()));
  ++folder_;
  rebuild_ = Rebuild::kClaim;
  if (journals()) journal_->leave_folder();
  if (writer_ != nullptr) writer_->abandon("the data folder was replaced");
  return true;
}

// Makes the folder this server's. First meta says that a crash from here on loses holds. Then the function
// removes an older copy of this server's own files. It does not touch files of another server.
Result<Done> Store::claim_folder() {
  auto meta = meta_.read();
  if (!meta) return Failure{meta.error()};
  Result<std::vector<uint64_t>> journals = list_journals(*files_);
  if (!journals) return Failure{journals.error()};
  Result<SnapshotFile> snapshot = find_snapshot(*files_);
  const bool has_data = !snapshot || !snapshot->name.empty() || !journals->empty();
  if (*meta ? (*meta)->id != meta_.on_disk().id : has_data) {
    return Failure{
        fmt::format("{} was replaced by a folder with the data of another server. Move that folder away, "
                    "or stop this server and start one on that folder",
                    files_->path())};
  }
  if (Result<Done> locked = files_->lock(); !locked) return locked;
  Result<Done> begun =
      meta_.begin(meta_.on_disk().id, engine_->tokens().issued(), Horizon::never(), "", clock());
  if (!begun) return begun;
  // The snapshot first: a start refuses a snapshot without the journal that it names.
  for (const char* name : {kSnapshotName, kPlainSnapshotName}) {
    if (Result<Done> done = files_->remove(name); !done) return done;
  }
  if (Result<Done> done = files_->sync_folder(); !done) return done;
  for (const uint64_t number : *journals) {
    if (Result<Done> done = files_->remove(journal_name(number)); !done) return done;
  }
  // Not 1: without the snapshot, which follows, the records have no meaning. A start sets such journals
  // aside.
  next_journal_ = 2;
  save_failed_at_ms_ = 0;
  return Done{};
}

void Store::save_in_new_folder() {
  if (snapshot_ != nullptr || !may_retry_save(read_clock_().wall_us / 1000)) return;
  const std::string why = begin_save();
  folder_failure_ = why.empty() ? unsaved_folder() : why;
}

// Why the server grants nothing until the snapshot in the new folder is in place.
std::string Store::unsaved_folder() const {
  return fmt::format("{} was replaced; a snapshot of all data is being written to the new folder",
                     files_->path());
}

// Called when the snapshot in the new folder is in place.
void Store::end_rebuild() {
  const Now now = read_clock_();
  const std::string boot_id = is_recovering(now) ? "" : boot_id_;
  Result<Done> begun = meta_.begin(meta_.on_disk().id, engine_->tokens().issued(),
                                   with_lost_holds(holds_to_keep(now), now), boot_id, clock());
  folder_failure_ = begun ? "" : begun.error();
  if (!begun) return;
  rebuild_ = Rebuild::kNone;
  log_line(LogLevel::kNotice, fmt::format("{}: all data is saved in the new folder", files_->path()));
}

}  // namespace holdfast
