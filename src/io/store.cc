// Opening the folder, committing turns, and what the disk's failures mean to clients.
#include "io/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/clock.h"
#include "io/handles.h"
#include "io/host.h"
#include "io/log.h"

namespace holdfast {

namespace {

constexpr uint64_t kSecondMs = 1000;

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const Options& options) {
  if (mkdir(options.dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Failure{fmt::format("cannot make the data folder {}: {}", options.dir, std::strerror(errno))};
  }
  auto files = open_folder(options.dir);
  if (!files) return Failure{files.error()};
  std::unique_ptr<Store> store(new Store(std::move(*files), options));
  if (Result<Done> done = store->prepare(); !done) return Failure{done.error()};
  return store;
}

Store::Store(std::unique_ptr<Files> files, const Options& options)
    : options_(options), files_(std::move(files)), meta_(*files_) {}

// Without a word of an earlier run the floor is the clock: no run issues tokens faster than one a
// microsecond.
Result<Done> Store::prepare() {
  if (Result<Done> locked = files_->lock(); !locked) return locked;
  auto found = meta_.read();
  if (!found) return Failure{found.error()};
  found_ = *found;
  const Now now = read_clock();
  token_floor_ = static_cast<uint64_t>(now.wall_us);
  if (found_) token_floor_ = found_->clean ? found_->token_max : found_->token_reserve;
  // What was written outlives the end of the process, but without a journal nothing is written.
  boot_id_ = journals() ? read_boot_id() : "";
  const std::string id = found_ ? found_->id : random_hex(kFolderIdDigits);
  clock_id_ = read_clock_id();
  first_ahead_ms_ = is_clock_found() ? found_->clock_ms : now.ahead_ms();
  // As long as holds that were lost may be alive, another crash must not make the loss look like none.
  const bool lossless = !found_ || found_->clean || found_->boot_id == boot_id_;
  return meta_.begin(id, token_floor_, horizon_found(now), lossless ? boot_id_ : "", clock());
}

// Whether what the run before has said of the engine's clock is about the same one.
bool Store::is_clock_found() const {
  return found_ && !clock_id_.empty() && found_->clock_boot_id == clock_id_;
}

// Of the run before, unless it has ended in order. After a new start of the machine the wall clock has to
// do.
Horizon Store::horizon_found(const Now& now) const {
  if (!found_ || found_->clean) return {};
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
  engine.service().loading = true;
  const Now now = read_clock();
  load_began_ms_ = load_told_ms_ = now.mono.count;
  saved_at_ms_ = now.wall_us / 1000;
  recovery_ = std::make_unique<Recovery>(*files_, engine, now, options_.skip_unknown == "yes");
  uv_idle_start(&load_idle_, on_load);
}

Horizon Store::holds_to_keep(const Now& now) const {
  const TimeMs latest = engine_->latest_deadline();
  if (always() || options_.recovery_wait_ms == 0 || latest.count == 0) return {};
  const DurationMs wait{static_cast<int64_t>(options_.recovery_wait_ms)};
  const TimeMs until = std::min(latest, now.mono + wait);
  return {now.to_wall_ms(until), until.count};
}

void Store::commit(const Now& now) {
  if (recovery_ != nullptr || stopped_) return;
  granted_ = engine_->recorded_grants();
  if (const std::string_view records = engine_->journal_records(); !records.empty()) {
    ++changes_;
    if (journals()) journal_->commit(records);
    engine_->clear_journal_records();
    meta_.keep_ahead(engine_->largest_token(), holds_to_keep(now), hooks_.end_turn);
  }
  update_service();
}

void Store::settle() {
  if (recovery_ != nullptr || stopped_ || !always()) return;
  if (!journal_->all_synced() && !journal_->syncing() && !journal_->sync_failed()) sync();
}

bool Store::may_reply(const Now& now) const {
  if (recovery_ != nullptr) return true;
  if (!meta_.covers(engine_->largest_token(), holds_to_keep(now))) return false;
  if (!journals()) return true;
  return always() ? journal_->all_synced() : journal_->all_written();
}

bool Store::may_reply_to_others() const { return !granted_ && !engine_->service().refusal.empty(); }

void Store::sync() {
  hooks_.mark_held();
  journal_->start_sync([this] {
    if (stopped_) return;
    hooks_.end_turn();  // first, as what leaves may open a turn
    if (!journal_->sync_failed()) hooks_.release_held();
  });
}

// What cannot be kept must not be promised.
void Store::update_service() {
  std::string why = folder_failure_;
  if (why.empty() && journals()) why = journal_->failure();
  if (why.empty()) why = meta_.failure();
  if (!why.empty()) why = "MISCONF nothing can be kept on disk, so nothing is granted: " + why;
  Service& service = engine_->service();
  if (service.refusal == why) return;
  if (why.empty()) log_line(LogLevel::kNotice, "the data folder can be written again: grants go on");
  service.refusal = why;
}

void Store::on_second(uv_timer_t* timer) noexcept {
  auto* store = static_cast<Store*>(timer->data);
  store->check_folder();
  if (store->journals() && !store->journal_->retry()) store->hooks_.end_turn();
  const Now now = read_clock();
  const bool recovered = is_due(store->engine_->service().recovering_until, now.mono);
  if (recovered) store->meta_.set_boot_id(store->boot_id_);
  if (!store->meta_.failure().empty() || (recovered && store->meta_.on_disk().boot_id != store->boot_id_)) {
    store->meta_.keep_ahead(store->engine_->largest_token(), store->holds_to_keep(now),
                            store->hooks_.end_turn);
  }
  // A journal that could not be synced is made good by a snapshot, and one behind it.
  const bool heals = store->journal_->sync_failed() && store->folder_failure_.empty();
  if (store->snapshot_ == nullptr &&
      (heals || store->save_wanted_ || store->save_is_due(now.wall_us / 1000))) {
    static_cast<void>(store->begin_save());
  }
  store->update_service();  // before the turn, which serves those who have waited for it
  store->hooks_.end_turn();
}

// Files that are open can be written in a folder that nobody will find again.
void Store::check_folder() {
  if (!files_->folder_gone()) return;
  if (Result<Done> back = files_->reopen_folder(); !back) {
    folder_failure_ = back.error();
    return;
  }
  log_line(LogLevel::kWarning,
           fmt::format("{} was replaced: everything is saved there anew", files_->path()));
  Result<Done> locked = files_->lock();
  folder_failure_ = locked ? "" : locked.error();
  if (!locked) return;
  const Meta& meta = meta_.on_disk();
  const Horizon horizon{meta.horizon_ms, meta.horizon_boot_ms};
  Result<Done> begun = meta_.begin(meta.id, engine_->largest_token(), horizon, boot_id_, clock());
  folder_failure_ = begun ? begin_save() : begun.error();
}

void Store::on_sync_timer(uv_timer_t* timer) noexcept {
  auto* store = static_cast<Store*>(timer->data);
  const bool due = store->journals() && store->options_.appendfsync == "everysec" &&
                   !store->journal_->all_synced() && !store->journal_->syncing();
  if (due && !store->journal_->sync_failed()) store->sync();
}

StorageDoor Store::door() {
  StorageDoor door;
  door.save = [this] { return save_now(); };
  door.save_in_background = [this]() -> std::string {
    if (snapshot_ != nullptr) return "ERR Background save already in progress";
    save_wanted_ = true;
    uv_timer_start(&second_timer_, on_second, 0, kSecondMs);
    return "";
  };
  door.last_save_s = [this] { return saved_at_ms_ / 1000; };
  door.facts = [this] { return facts(); };
  return door;
}

std::string Store::prepare_stop(ShutdownMode mode) {
  keep_on_stop_ = !mode.never_save;
  if (!mode.save) return "";
  std::string why = save_now();
  return why.empty() || mode.force ? "" : "ERR Errors trying to SHUTDOWN. Check logs.";
}

// Everything is in the journal; without one a snapshot has to have it, where snapshots are asked for at
// all.
bool Store::stop() {
  bool kept = true;
  if (recovery_ == nullptr && engine_ != nullptr) {
    commit(read_clock());
    if (!journals() && keep_on_stop_ && !options_.save.empty() && changes_ > 0) {
      if (std::string why = save_now(); !why.empty()) log_line(LogLevel::kWarning, why);
    }
    kept = !journals() || journal_->sync_now();
    Result<Done> ended = kept ? meta_.end(engine_->largest_token()) : Result<Done>(Done{});
    if (!ended) log_line(LogLevel::kWarning, ended.error());
  }
  stopped_ = true;
  snapshot_.reset();  // they know the engine, which goes first
  recovery_.reset();
  if (loop_ != nullptr) close_handles();
  return kept;
}

void Store::close_handles() {
  close_handle(load_idle_);
  close_handle(save_idle_);
  close_handle(second_timer_);
  close_handle(sync_timer_);
}

}  // namespace holdfast
