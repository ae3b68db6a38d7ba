// The store from its opening to its stop: which part follows which.
#include "io/disk/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "io/os/host_info.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

Result<Done> refuse_unfinished_restore(Files& files) {
  Result<bool> unfinished = files.exists(kRestoreName);
  if (!unfinished) return Failure{unfinished.error()};
  if (!*unfinished) return Done{};
  return Failure{fmt::format(
      "{}: a restore did not end, and {} is left of it. Run `holdfast restore` again, to this folder",
      files.path(), kRestoreName)};
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
  if (mkdir(options.dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Failure{fmt::format("cannot make the data folder {}: {}", options.dir, std::strerror(errno))};
  }
  auto files = open_folder(options.dir);
  if (!files) return Failure{files.error()};
  return open(options, std::move(*files), read_clock);
}

Result<std::unique_ptr<Store>> Store::open(const Options& options, std::unique_ptr<Files> files,
                                           ReadClock time) {
  std::unique_ptr<Store> store(new Store(std::move(files), options, time));
  if (Result<Done> done = store->prepare(); !done) return Failure{done.error()};
  return store;
}

Store::Store(std::unique_ptr<Files> files, const Options& options, ReadClock time)
    : folder_(std::move(files), options, time),
      saves_(folder_, {[this] { seconds_->start(0, 1000); },
                       [this] {
                         if (hooks_.working) hooks_.working();
                       },
                       [this](bool in_folder) { end_save(in_folder); }}),
      watch_(folder_, saves_) {}

Result<Done> Store::prepare() {
  Files& files = folder_.files();
  if (Result<Done> locked = files.lock(); !locked) return locked;
  if (Result<Done> restored = refuse_unfinished_restore(files); !restored) return restored;
  auto meta = folder_.meta().read();
  if (!meta) return Failure{meta.error()};
  // Before the first change of the folder: the version that wrote it must find it as it was.
  if (Result<Done> known = reject_newer_journals(files); !known) return known;
  const Now now = folder_.now();
  const std::string kernel = read_boot_id();
  const std::string clock_id = read_clock_id();
  Result<EarlierRun> past = EarlierRun::read(files, std::move(*meta), kernel, clock_id, now);
  if (!past) return Failure{past.error()};
  past_.emplace(std::move(*past));
  // Written data survives the end of the process, but without a journal nothing is written.
  folder_.set_boot({folder_.journals() ? kernel : "", clock_id, past_->first_ahead_ms(now)});
  // If the load fails, the next start must find the past unknown, too.
  return past_->is_unknown() ? Done{} : begin_meta(now, kernel);
}

// Keeps the kernel and the sequence until the journal has been read. If this start fails or is stopped, it
// has lost nothing, and the next one must check the journal, too.
Result<Done> Store::begin_meta(const Now& now, const std::string& kernel) {
  const bool lossless = past_->is_lossless();
  Horizon horizon = past_->horizon(now);
  if (!lossless) horizon = bounded(horizon, folder_.options().recovery_wait_ms, now);
  const IssuedTokens before{past_->token_floor(), past_->tokens_ahead(), 0};
  const std::string id = past_->has_meta() ? past_->folder_id() : random_hex(kFolderIdDigits);
  Result<Done> begun =
      folder_.meta().begin(id, before, horizon, lossless ? kernel : "", clock(), past_->journal_sequence());
  if (begun) return begun;
  if (!past_->has_meta()) {
    return Failure{fmt::format(
        "{}; a start in a folder without meta must write it: free space, or choose another --dir",
        begun.error())};
  }
  warn_of_no_grants(begun.error());
  return Done{};
}

void Store::start(Engine& engine, uv_loop_t* loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  folder_.start(engine, loop);
  sync_.emplace(folder_, [this] { end_write(); });
  seconds_.emplace(loop, [this] { every_second(); });
  saves_.start();
  engine.availability().loading = true;
  load_ = std::make_unique<FolderLoad>(folder_, std::move(*past_),
                                       [this](Result<Done> done) { end_load(std::move(done)); });
  past_.reset();
}

void Store::end_load(Result<Done> done) {
  if (!done) return hooks_.fail(done.error());
  load_.reset();
  loaded_ = true;
  folder_.end_iteration();
  folder_.engine().availability().loading = false;
  folder_.update_availability();  // before the first request: the journal may need a new snapshot
  // Tokens in a snapshot may be ahead of the reserve. No reply leaves before the reserve covers them.
  keep_meta_ahead(folder_.now());
  seconds_->start(1000, 1000);
  sync_->start();
  hooks_.loaded();
}

std::optional<uint64_t> Store::loaded_percent() const {
  if (load_ == nullptr) return std::nullopt;
  return load_->percent();
}

void Store::settle(const Now& now) {
  if (!is_running()) return;
  folder_.end_iteration();
  // In every iteration: a running write may not cover this iteration's grants, and the wall clock may have
  // been set. After a failure the retry is once a second.
  if (folder_.meta().failure().empty()) keep_meta_ahead(now);
  sync_->settle();
}

void Store::keep_meta_ahead(const Now& now) {
  if (!watch_.is_unclaimed()) folder_.keep_meta_ahead(now, [this] { end_write(); });
}

// The journal is synced, or meta is written.
void Store::end_write() {
  if (stopped_) return;
  hooks_.end_iteration();  // first, because sending replies may begin a loop iteration
  hooks_.release_held();
}

DurationHistogram Store::sync_times() const {
  return folder_.has_started() ? folder_.journal().sync_times() : DurationHistogram();
}

void Store::every_second() {
  watch_.check();
  if (folder_.journals() && !folder_.journal().retry()) hooks_.end_iteration();
  const Now now = folder_.now();
  if (!watch_.is_rebuilding() && !folder_.is_recovering(now))
    folder_.meta().set_boot_id(folder_.boot().kernel);
  keep_meta_ahead(now);
  saves_.end_backups();
  // After a failed sync a new snapshot and a new journal replace the journal.
  const bool heals = folder_.journal().sync_failed() && folder_.unusable().empty();
  if (!watch_.is_rebuilding()) saves_.begin_if_due(heals);
  folder_.update_availability();  // before the iteration, which serves the requests that waited for it
  hooks_.end_iteration();
}

std::function<int64_t()> Store::script_clock(std::function<int64_t()> clock_us) {
  return [this, clock_us = std::move(clock_us)] {
    if (sync_) sync_->look_in_script();
    return clock_us();
  };
}

StorageHooks Store::storage_hooks() {
  StorageHooks hooks;
  hooks.save = [this] { return save_now(); };
  hooks.save_in_background = [this]() -> std::string {
    if (saves_.in_progress() != nullptr) return "ERR Background save already in progress";
    saves_.request();
    return "";
  };
  hooks.start_backup = [this](ConnId client) { return start_backup(client); };
  hooks.read_backup = [this](ConnId client) { return saves_.read_backup(client); };
  hooks.last_save_s = [this] { return saves_.schedule().saved_at_ms() / 1000; };
  hooks.facts = [this] { return facts(); };
  return hooks;
}

std::string Store::start_backup(ConnId client) {
  if (watch_.is_rebuilding()) return "ERR " + folder_.unusable();
  return saves_.start_backup(client);
}

std::string Store::save_now() {
  if (saves_.in_progress() == nullptr && watch_.is_unclaimed()) return "ERR " + folder_.unusable();
  return saves_.save_now();
}

void Store::end_save(bool in_folder) {
  if (in_folder) watch_.end_save();
  hooks_.end_iteration();
}

// Rejects a stop that would lose data that the settings keep: the server continues.
std::string Store::prepare_stop(ShutdownMode mode) {
  keep_on_stop_ = !mode.never_save;
  const bool kept = folder_.journals() || folder_.options().save.empty() || saves_.unsaved() == 0;
  const bool loses = keep_on_stop_ && !kept;
  if (!loaded_ || (!mode.save && !loses)) return "";
  saves_.abandon("it was replaced by the snapshot of the stop");
  const std::string why = save_now();
  if (!why.empty()) log_line(LogLevel::kWarning, fmt::format("SHUTDOWN: {}", why));
  return why.empty() || mode.force ? "" : "ERR Errors trying to SHUTDOWN. Check logs.";
}

Result<Done> Store::stop() {
  Result<Done> kept = Done{};
  if (loaded_) {
    folder_.engine().end_unwritten_request();
    watch_.check();
    commit();
    kept = keep_all();
    // After a failure meta is unchanged: the next start uses its horizon and its reserve.
    Result<Done> ended = kept ? end_meta() : Result<Done>(Done{});
    if (!ended)
      log_line(LogLevel::kWarning, fmt::format("the stop could not write meta: {}", ended.error()));
    all_kept_ = kept && ended;
  }
  stopped_ = true;
  saves_.stop();  // it and the load refer to the engine, which is destroyed before the store
  load_.reset();
  sync_.reset();
  seconds_.reset();
  return kept;
}

// The journal has all data. A snapshot must have it if the journal failed, or if there is none and the
// options ask for snapshots.
Result<Done> Store::keep_all() {
  const bool journals = folder_.journals();
  JournalWriter& journal = folder_.journal();
  const bool wanted = journals || (keep_on_stop_ && !folder_.options().save.empty());
  bool synced = journals && journal.sync_now();
  const bool unsure = journal.sync_failed() || (!journals && saves_.unsaved() > 0);
  if (watch_.awaits_save() || (wanted && unsure)) {
    saves_.abandon("it was replaced by the snapshot of the stop");
    const std::string why =
        folder_.engine().at_rest() ? save_now() : "a script that has written has not ended";
    if (!why.empty()) {
      const char* lost = journal.sync_failed() ? "the last changes may not be on disk"
                                               : "the changes since the last snapshot are lost";
      return Failure{
          fmt::format("{}/{} was not written, and {}: {}", folder_.path(), kSnapshotName, lost, why)};
    }
    synced = journals && journal.sync_now();
  }
  if (!folder_.unusable().empty())
    return Failure{fmt::format("the last changes are not on disk: {}", folder_.unusable())};
  if (journals && !synced)
    return Failure{fmt::format("the last changes are not in the journal: {}", journal.failure())};
  return Done{};
}

// The stop is not clean if lost holds may be alive: holds lost before the last start, or by this stop.
Result<Done> Store::end_meta() {
  const Now now = folder_.now();
  const bool journals = folder_.journals();
  const bool clean = !folder_.is_recovering(now) && (journals || saves_.unsaved() == 0);
  const Horizon lost = folder_.with_lost_holds(journals ? Horizon{} : folder_.holds_to_keep(now), now);
  return folder_.meta().end(folder_.engine().tokens().issued(true), clean, lost,
                            journals ? folder_.journal().next_sequence() : 0);
}

}  // namespace holdfast
