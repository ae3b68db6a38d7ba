// The steps in a replaced folder.
#include "io/disk/folder_watch.h"

#include <fmt/format.h>

#include "io/disk/recovery.h"
#include "io/os/log.h"

namespace holdfast {

void FolderWatch::check() {
  if (folder_.files().folder_removed() && !enter_new_folder()) return;
  if (step_ == Step::kClaim) {
    Result<Done> claimed = claim();
    if (claimed) step_ = Step::kSave;
    // The snapshot may have to wait for the end of an unfinished one.
    folder_.set_unusable(claimed ? unsaved() : claimed.error());
  }
  if (step_ == Step::kSave) return save();
  if (step_ == Step::kNone) folder_.set_unusable("");
}

bool FolderWatch::enter_new_folder() {
  if (folder_.removes_journals()) {  // the job would remove files of the same names in the new folder
    folder_.set_unusable("the data folder was moved or removed while old journals are removed from it");
    return false;
  }
  if (Result<Done> back = folder_.reopen(); !back) {
    folder_.set_unusable(fmt::format("the data folder was moved or removed: {}", back.error()));
    return false;
  }
  log_line(LogLevel::kWarning, fmt::format("{} was replaced", folder_.path()));
  step_ = Step::kClaim;
  saves_.leave_folder();
  return true;
}

// Makes the folder this server's. First meta says that a crash from here on loses holds. Then the function
// removes an older copy of this server's own files. It does not touch files of another server.
Result<Done> FolderWatch::claim() {
  Files& files = folder_.files();
  const std::string& id = folder_.meta().on_disk().id;
  auto meta = folder_.meta().read();
  if (!meta) return Failure{meta.error()};
  Result<std::vector<uint64_t>> journals = list_journals(files);
  if (!journals) return Failure{journals.error()};
  Result<SnapshotFile> snapshot = find_snapshot(files);
  const bool has_data = !snapshot || !snapshot->name.empty() || !journals->empty();
  if (*meta ? (*meta)->id != id : has_data) {
    return Failure{
        fmt::format("{} was replaced by a folder with the data of another server. Move that folder away, "
                    "or stop this server and start one on that folder",
                    folder_.path())};
  }
  if (Result<Done> locked = files.lock(); !locked) return locked;
  const IssuedTokens issued = folder_.engine().tokens().issued();
  Result<Done> begun = folder_.meta().begin(id, issued, Horizon::never(), "", folder_.clock());
  if (!begun) return begun;
  // The snapshot first: a start refuses a snapshot without the journal that it names.
  for (const char* name : {kSnapshotName, kPlainSnapshotName}) {
    if (Result<Done> done = files.remove(name); !done) return done;
  }
  if (Result<Done> done = files.sync_folder(); !done) return done;
  for (const uint64_t number : *journals) {
    if (Result<Done> done = files.remove(journal_name(number)); !done) return done;
  }
  // Not 1: without the snapshot, which follows, the records have no meaning. A start sets such journals
  // aside.
  folder_.set_next_journal(2);
  saves_.retry_at_once();
  return Done{};
}

void FolderWatch::save() {
  if (saves_.in_progress() != nullptr || !saves_.may_retry()) return;
  const std::string why = saves_.begin();
  folder_.set_unusable(why.empty() ? unsaved() : why);
}

// Why the server grants nothing until the snapshot in the new folder is in place.
std::string FolderWatch::unsaved() const {
  return fmt::format("{} was replaced; a snapshot of all data is being written to the new folder",
                     folder_.path());
}

void FolderWatch::end_save() {
  if (step_ != Step::kSave) return;
  folder_.set_unusable(saves_.schedule().failure());
  if (folder_.unusable().empty()) end();
}

// The snapshot in the new folder is in place.
void FolderWatch::end() {
  const Now now = folder_.now();
  const std::string kernel = folder_.is_recovering(now) ? "" : folder_.boot().kernel;
  MetaKeeper& meta = folder_.meta();
  Result<Done> begun =
      meta.begin(meta.on_disk().id, folder_.engine().tokens().issued(),
                 folder_.with_lost_holds(folder_.holds_to_keep(now), now), kernel, folder_.clock());
  folder_.set_unusable(begun ? "" : begun.error());
  if (!begun) return;
  step_ = Step::kNone;
  log_line(LogLevel::kNotice, fmt::format("{}: all data is saved in the new folder", folder_.path()));
}

}  // namespace holdfast
