// Opens the folder, commits the records of loop iterations, and derives the availability from failures of
// the disk.
#include "io/disk/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/engine/resumable_request.h"
#include "io/disk/meta_repair.h"
#include "io/os/clock.h"
#include "io/os/handles.h"
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
    : options_(options), read_clock_(time), files_(std::move(files)), meta_(*files_) {}

// Without data of an earlier run the floor is the clock, because no run issues more than one token in a
// microsecond. If only meta is missing, the past is unknown: its tokens, its last stop, and lost holds.
Result<Done> Store::prepare() {
  if (Result<Done> locked = files_->lock(); !locked) return locked;
  if (Result<Done> restored = refuse_unfinished_restore(*files_); !restored) return restored;
  auto found = meta_.read();
  if (!found) return Failure{found.error()};
  // Before the first change of the folder: the version that wrote it must find it as it was.
  if (Result<Done> known = reject_newer_journals(*files_); !known) return known;
  found_ = *found;
  const Now now = read_clock_();
  Result<bool> unknown = lacks_meta();
  if (!unknown) return Failure{unknown.error()};
  read_tokens(now, *unknown);
  // Written data survives the end of the process, but without a journal nothing is written.
  const std::string kernel = read_boot_id();
  boot_id_ = journals() ? kernel : "";
  const std::string id = found_ ? found_->id : random_hex(kFolderIdDigits);
  clock_id_ = read_clock_id();
  first_ahead_ms_ = is_clock_found() ? found_->clock_ms : now.ahead_ms();
  // While lost holds may be alive, another crash must not make the loss invisible.
  lossless_ = !found_ || kept_writes(*found_, kernel);
  if (*unknown) lossless_ = false;
  Horizon horizon = horizon_found(now);
  if (!lossless_) horizon = bounded(horizon, now);
  if (*unknown) return Done{};  // if the load fails, the next start must find the past unknown, too
  // Both are kept until the journal has been read. If this start fails or is stopped, it has lost nothing,
  // and the next one must check the journal, too.
  const std::string boot_id = lossless_ ? kernel : "";
  const uint64_t sequence = found_ ? found_->journal_sequence : 0;
  const IssuedTokens before{token_floor_, tokens_ahead(), 0};
  Result<Done> begun = meta_.begin(id, before, horizon, boot_id, clock(), sequence);
  if (begun) return begun;
  if (!found_) {
    return Failure{fmt::format(
        "{}; a start in a folder without meta must write it: free space, or choose another --dir",
        begun.error())};
  }
  warn_of_no_grants(begun.error());
  return Done{};
}

// Tokens of a restored backup have moved on since, in the server that made it: see token_at().
void Store::read_tokens(const Now& now, bool unknown) {
  token_floor_ = static_cast<uint64_t>(now.wall_us) + (unknown ? kUnknownTokenLead : 0);
  if (!found_) return;
  // There must be a next token.
  const auto present = [&](uint64_t token) {
    return std::max(token, std::min(token_at(*found_, token, now.wall_us), kLastNamedToken));
  };
  token_floor_ = present(found_->clean ? found_->token_max : found_->token_reserve);
  tokens_ahead_ = found_->tokens_ahead;
  for (AheadToken& own : tokens_ahead_) own.token = present(own.token);
}

// On a full disk a start serves the data that it can read, and leaves the folder as it is until meta is
// written: the text on disk may say that all data was synced by the last stop.
void Store::warn_of_no_grants(const std::string& why) const {
  log_line(LogLevel::kWarning, fmt::format("{}; no new locks are granted until it works", why));
}

// Whether the folder has the data of a server, but no meta. A dump of Redis alone is no such data.
Result<bool> Store::lacks_meta() {
  if (found_) return false;
  Result<std::vector<uint64_t>> journals = list_journals(*files_);
  if (!journals) return Failure{journals.error()};
  Result<SnapshotFile> snapshot = find_snapshot(*files_);
  if (!snapshot) return Failure{snapshot.error()};
  if (journals->empty() && snapshot->journal.number == 0) return false;
  log_line(LogLevel::kWarning, fmt::format("{} has data, but no file meta: tokens begin {} minutes ahead "
                                           "of the clock",
                                           files_->path(), kUnknownTokenLead / 60'000'000));
  return true;
}

// Bounds the total recovery wait, even if the process stops during it several times.
Horizon Store::bounded(Horizon horizon, const Now& now) const {
  const TimeMs until = now.mono + DurationMs{static_cast<int64_t>(options_.recovery_wait_ms)};
  return {std::min(horizon.wall_ms, now.to_wall_ms(until)), std::min(horizon.boot_ms, until.count)};
}

// Whether the times of the previous run are on the same engine clock as this run's.
bool Store::is_clock_found() const {
  return found_ && !clock_id_.empty() && found_->clock_boot_id == clock_id_;
}

// Returns the horizon of the previous run; 0 if it stopped cleanly. After a reboot the wall clock
// determines it.
Horizon Store::horizon_found(const Now& now) const {
  if (!found_ || found_->clean) return {};
  if (found_->horizon_ms >= kNever.count) return Horizon::never();
  if (is_clock_found()) return {found_->horizon_ms, found_->horizon_boot_ms};
  return {found_->horizon_ms, std::max<int64_t>(0, found_->horizon_ms - now.ahead_ms())};
}

void Store::start(Engine& engine, uv_loop_t* loop, Hooks hooks) {
  engine_ = &engine;
  loop_ = loop;
  hooks_ = std::move(hooks);
  meta_.set_loop(loop);
  journal_.emplace(*files_, loop);
  uv_idle_init(loop, &load_idle_);
  uv_idle_init(loop, &save_idle_);
  uv_timer_init(loop, &second_timer_);
  uv_timer_init(loop, &sync_timer_);
  for (void** data : {&load_idle_.data, &save_idle_.data, &second_timer_.data, &sync_timer_.data})
    *data = this;
  engine.availability().loading = true;
  const Now now = read_clock_();
  load_began_ms_ = load_logged_ms_ = now.mono.count;
  saved_at_ms_ = now.wall_us / 1000;
  // Without meta a crash of the machine is possible, too, but the start drops no journal on that ground.
  recovery_ =
      std::make_unique<Recovery>(*files_, engine, now,
                                 Recovery::Rules{options_.skip_unknown == "yes", lossless_ || !found_,
                                                 found_.has_value(), found_ && found_->clean});
  uv_idle_start(&load_idle_, on_load);
}

// Depends on the granted holds, not on the present time: an idle server has nothing to write.
Horizon Store::holds_to_keep(const Now& now) const {
  const TimeMs latest = engine_->latest_deadline();
  if (always() || options_.recovery_wait_ms == 0 || is_due(latest, now.mono)) return {};
  if (latest == kNever) return Horizon::never();
  return {now.to_wall_ms(latest), latest.count};
}

void Store::keep_meta_ahead(const Now& now) {
  if (rebuild_ == Rebuild::kClaim) return;  // the folder may be another server's
  const int64_t left_ms = std::max<int64_t>(0, (engine_->latest_deadline() - now.mono).count);
  meta_.keep_ahead(engine_->tokens(), holds_to_keep(now), left_ms, [this] {
    if (stopped_) return;
    hooks_.end_turn();  // first, because sending replies may begin a loop iteration
    hooks_.release_held();
  });
}

bool Store::is_recovering(const Now& now) const {
  return !is_due(engine_->availability().recovering_until, now.mono);
}

// Adds the holds for which this run waits. The next start must wait for them, too.
Horizon Store::with_lost_holds(Horizon holds, const Now& now) const {
  if (!is_recovering(now)) return holds;
  const TimeMs until = engine_->availability().recovering_until;
  return {std::max(holds.wall_ms, now.to_wall_ms(until)), std::max(holds.boot_ms, until.count)};
}

void Store::commit() {
  if (recovery_ != nullptr || stopped_) return;
  if (const std::string_view records = engine_->journal_records(); !records.empty()) {
    ++changes_;
    granted_ = granted_ || engine_->recorded_grants();  // SAVE commits, too
    if (journals()) journal_->commit(records);
    engine_->clear_journal_records();
  }
  update_service();
}

bool Store::has_new_tokens() const {
  const Tokens& tokens = engine_->tokens();
  return tokens.largest() != settled_token_ || tokens.ahead_serial() != settled_ahead_;
}

void Store::end_iteration() {
  granted_ = false;
  settled_token_ = engine_->tokens().largest();
  settled_ahead_ = engine_->tokens().ahead_serial();
}

void Store::settle(const Now& now) {
  if (recovery_ != nullptr || stopped_) return;
  end_iteration();
  // In every iteration: a running write may not cover this iteration's grants, and the wall clock may have
  // been set. After a failure the retry is once a second.
  if (meta_.failure().empty()) keep_meta_ahead(now);
  if (always() && journal_->needs_sync()) sync();
}

bool Store::may_reply(const Now& now) const {
  if (recovery_ != nullptr) return true;
  if (!meta_.covers(engine_->tokens(), holds_to_keep(now))) return false;
  if (!journals()) return true;
  if (engine_->withholds_records()) return false;
  return always() ? journal_->all_synced() : journal_->all_written();
}

// A grant that ended in the same iteration has no record, but it gave a token.
bool Store::may_reply_to_others() const {
  return !granted_ && !has_new_tokens() && !engine_->availability().refusal.empty();
}

Store::Promise Store::promise(const Now& now) const {
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
bool Store::is_kept(const Promise& promise, const Now& now) const {
  const Horizon holds = holds_to_keep(now);
  Issued issued = promise.meta;
  issued.holds.wall_ms = std::min(issued.holds.wall_ms, holds.wall_ms);
  issued.holds.boot_ms = std::min(issued.holds.boot_ms, holds.boot_ms);
  if (!meta_.covers(issued)) return false;
  if (!journals()) return true;
  return always() ? journal_->is_synced(promise.journal) : journal_->is_written(promise.journal);
}

void Store::sync() {
  journal_->start_sync([this] {
    if (stopped_) return;
    hooks_.end_turn();  // first, because sending replies may begin a loop iteration
    hooks_.release_held();
  });
}

// Why changes cannot be kept at present: the reason in -MISCONF. Empty if they can.
std::string Store::failure() const {
  if (!folder_failure_.empty()) return folder_failure_;
  if (journals() && journal_ && !journal_->failure().empty()) return journal_->failure();
  return meta_.failure();
}

// Rejects grants while they cannot be written to disk.
void Store::update_service() {
  std::string why = failure();
  if (!why.empty())
    why = "MISCONF persistence failed (" + why + "): no new locks are granted until it works again";
  Availability& availability = engine_->availability();
  if (availability.refusal == why) return;
  if (why.empty()) {
    log_line(LogLevel::kNotice, "persistence works again: new locks are granted");
  } else if (!folder_failure_.empty()) {  // the journal and meta log their failures themselves
    log_line(LogLevel::kWarning,
             fmt::format("persistence failed: {}; no new locks are granted until it works again",
                         folder_failure_));
  }
  availability.refusal = why;
}

// An exception ends the process, as it may not pass through libuv.
// NOLINTNEXTLINE(bugprone-exception-escape)
void Store::on_second(uv_timer_t* timer) noexcept { static_cast<Store*>(timer->data)->every_second(); }

void Store::every_second() {
  check_folder();
  if (journals() && !journal_->retry()) hooks_.end_turn();
  const Now now = read_clock_();
  if (rebuild_ == Rebuild::kNone && !is_recovering(now)) meta_.set_boot_id(boot_id_);
  keep_meta_ahead(now);
  end_backups();
  // After a failed sync a new snapshot and a new journal replace the journal.
  const bool heals = journal_->sync_failed() && folder_failure_.empty();
  const bool due = heals || save_wanted_ || save_is_due(now.wall_us / 1000);
  if (rebuild_ == Rebuild::kNone && snapshot_ == nullptr && due) {
    static_cast<void>(begin_save());
  }
  update_service();  // before the iteration, which serves the requests that waited for it
  hooks_.end_turn();
}

void Store::on_sync_timer(uv_timer_t* timer) noexcept { static_cast<Store*>(timer->data)->sync_if_due(); }

void Store::sync_if_due() {
  sync_looked_at_ = read_clock_().mono;
  if (journals() && options_.appendfsync == "everysec" && journal_->needs_sync()) sync();
}

std::function<int64_t()> Store::script_clock(std::function<int64_t()> clock_us) {
  return [this, clock_us = std::move(clock_us)] {
    sync_in_script();
    return clock_us();
  };
}

// To begin a sync is safe in the middle of a script: a job gets the files, and the loop handles its end.
void Store::sync_in_script() {
  if (stopped_ || engine_ == nullptr || engine_->at_rest() || !journals() || !journal_->needs_sync())
    return;
  const DurationMs interval{static_cast<int64_t>(options_.fsync_interval_ms)};
  if (is_due(sync_looked_at_ + interval, read_clock_().mono)) sync_if_due();
}

StorageHooks Store::door() {
  StorageHooks door;
  door.save = [this] { return save_now(); };
  door.save_in_background = [this]() -> std::string {
    if (snapshot_ != nullptr) return "ERR Background save already in progress";
    request_save();
    return "";
  };
  door.start_backup = [this](ConnId client) { return start_backup(client); };
  door.read_backup = [this](ConnId client) { return backups_.read(client, loop_, read_clock_().mono); };
  door.last_save_s = [this] { return saved_at_ms_ / 1000; };
  door.facts = [this] { return facts(); };
  return door;
}

// The next snapshot begins in the next loop iteration, or after the one in progress.
void Store::request_save() {
  save_wanted_ = true;
  uv_timer_start(&second_timer_, on_second, 0, 1000);
}

// Rejects a stop that would lose data that the settings keep: the server continues.
std::string Store::prepare_stop(ShutdownMode mode) {
  keep_on_stop_ = !mode.never_save;
  const bool loses = !journals() && keep_on_stop_ && !options_.save.empty() && unsaved() > 0;
  if (recovery_ != nullptr || (!mode.save && !loses)) return "";
  abandon_save("it was replaced by the snapshot of the stop");
  const std::string why = save_now();
  if (!why.empty()) log_line(LogLevel::kWarning, fmt::format("SHUTDOWN: {}", why));
  return why.empty() || mode.force ? "" : "ERR Errors trying to SHUTDOWN. Check logs.";
}

Result<Done> Store::stop() {
  Result<Done> kept = Done{};
  if (recovery_ == nullptr && engine_ != nullptr) {
    end_unwritten_request(engine_->state());
    check_folder();
    commit();
    kept = keep_all();
    // After a failure meta is unchanged: the next start uses its horizon and its reserve.
    Result<Done> ended = kept ? end_meta() : Result<Done>(Done{});
    if (!ended)
      log_line(LogLevel::kWarning, fmt::format("the stop could not write meta: {}", ended.error()));
    all_kept_ = kept && ended;
  }
  stopped_ = true;
  backups_.clear();
  snapshot_.reset();  // they refer to the engine, which is destroyed before the store
  recovery_.reset();
  if (loop_ != nullptr) close_handles();
  return kept;
}

// The journal has all data. A snapshot must have it if the journal failed, or if there is none and the
// options ask for snapshots.
Result<Done> Store::keep_all() {
  const bool wanted = journals() || (keep_on_stop_ && !options_.save.empty());
  bool synced = journals() && journal_->sync_now();
  const bool unsure = journal_->sync_failed() || (!journals() && unsaved() > 0);
  if (rebuild_ == Rebuild::kSave || (wanted && unsure)) {
    abandon_save("it was replaced by the snapshot of the stop");
    const std::string why = engine_->at_rest() ? save_now() : "a script that has written has not ended";
    if (!why.empty()) {
      const char* lost = journal_->sync_failed() ? "the last changes may not be on disk"
                                                 : "the changes since the last snapshot are lost";
      return Failure{
          fmt::format("{}/{} was not written, and {}: {}", files_->path(), kSnapshotName, lost, why)};
    }
    synced = journals() && journal_->sync_now();
  }
  if (!folder_failure_.empty())
    return Failure{fmt::format("the last changes are not on disk: {}", folder_failure_)};
  if (journals() && !synced)
    return Failure{fmt::format("the last changes are not in the journal: {}", journal_->failure())};
  return Done{};
}

// The stop is not clean if lost holds may be alive: holds lost before the last start, or by this stop.
Result<Done> Store::end_meta() {
  const Now now = read_clock_();
  const bool clean = !is_recovering(now) && (journals() || unsaved() == 0);
  const Horizon lost = with_lost_holds(journals() ? Horizon{} : holds_to_keep(now), now);
  return meta_.end(engine_->tokens().issued(true), clean, lost, journals() ? journal_->next_sequence() : 0);
}

void Store::close_handles() {
  close_handle(load_idle_);
  close_handle(save_idle_);
  close_handle(second_timer_);
  close_handle(sync_timer_);
}

}  // namespace holdfast
