// The start: reads the folder, a few milliseconds at a time. Meanwhile clients get -LOADING replies.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "io/disk/store.h"
#include "io/os/clock.h"
#include "io/os/host_info.h"
#include "io/os/log.h"

namespace holdfast {

void Store::on_load(uv_idle_t* idle) {
  auto* store = static_cast<Store*>(idle->data);
  Result<bool> all = store->load_step();
  if (all && !*all) return;
  uv_idle_stop(idle);
  if (!all) return store->hooks_.fail(all.error());
  if (Result<Done> done = store->finish_load(); !done) return store->hooks_.fail(done.error());
  store->hooks_.loaded();
}

Result<bool> Store::load_step() {
  constexpr int64_t kStepMs = 5;
  const int64_t until_ms = read_clock_().mono.count + kStepMs;
  while (read_clock_().mono.count < until_ms) {
    Result<bool> all = recovery_->step();
    if (!all || *all) return all;
  }
  log_progress(until_ms);
  return false;
}

std::optional<uint64_t> Store::loaded_percent() const {
  if (recovery_ == nullptr) return std::nullopt;
  const uint64_t total = recovery_->total_bytes();
  return total == 0 ? 0 : std::min<uint64_t>(100, recovery_->read_bytes() * 100 / total);
}

void Store::log_progress(int64_t now_ms) {
  constexpr int64_t kEveryMs = 2000;
  if (now_ms - load_logged_ms_ < kEveryMs) return;
  load_logged_ms_ = now_ms;
  constexpr uint64_t kMiB = uint64_t{1} << 20U;
  log_line(LogLevel::kNotice,
           fmt::format("{}: loading: {} of {} MiB read, {} keys, {} journal records", files_->path(),
                       recovery_->read_bytes() / kMiB, recovery_->total_bytes() / kMiB, recovery_->keys(),
                       recovery_->frames()));
}

Result<Done> Store::finish_load() {
  const Now now = read_clock_();
  // A folder of which only meta is left has lost all holds. A new journal must not hide that.
  const bool held = meta_.on_disk().horizon_boot_ms > now.mono.count;
  if (found_ && !found_->clean && held && recovery_->found_nothing()) lossless_ = false;
  Horizon horizon{meta_.on_disk().horizon_ms, meta_.on_disk().horizon_boot_ms};
  // An empty file in place of the journal that the snapshot names: its records are lost.
  const bool emptied = lossless_ && recovery_->misses_named_journal();
  if (emptied) lossless_ = false;
  if (emptied || (!lossless_ && !found_)) horizon = bounded(Horizon::never(), now);
  if (Result<Done> whole = check_end(horizon); !whole) return whole;
  // The check may have waited for the disk: the grace of sessions counts from now on.
  engine_->keep_journal();  // first, because the ends of SESSION holds are changes, too
  engine_->finish_loading(read_clock_());
  next_journal_ = recovery_->next_journal();
  if (journals()) {
    open_journal();
  } else {
    ++next_journal_;  // the next snapshot's number is above that of the loaded one, as with journals
  }
  if (recovery_->may_lack_bytes() && !journal_->sync_failed()) journal_->distrust();
  for (const uint64_t number : recovery_->stale()) static_cast<void>(files_->remove(journal_name(number)));
  log_line(LogLevel::kNotice,
           fmt::format("{}: loaded {} keys, {} journal records in {} ms", files_->path(), recovery_->keys(),
                       recovery_->frames(), now.mono.count - load_began_ms_),
           {{"keys", recovery_->keys()},
            {"journal_records", recovery_->frames()},
            {"took_ms", now.mono.count - load_began_ms_}});
  if (const uint64_t skipped = recovery_->skipped_keys(); skipped > 0) {
    log_line(LogLevel::kWarning,
             fmt::format("skipped {} keys of unsupported types (--skip-unsupported-types)", skipped));
  }
  log_clock(now);
  recover_if_needed(now);
  recovery_.reset();
  end_iteration();
  engine_->availability().loading = false;
  update_service();  // before the first request: the journal may need a new snapshot
  // Tokens in a snapshot may be ahead of the reserve. No reply leaves before the reserve covers them.
  keep_meta_ahead(now);
  uv_timer_start(&second_timer_, on_second, 1000, 1000);
  uv_timer_start(&sync_timer_, on_sync_timer, options_.fsync_interval_ms, options_.fsync_interval_ms);
  return Done{};
}

// A journal that cannot be opened is replaced by a new one, with a snapshot, as soon as the disk works.
void Store::open_journal() {
  Result<Done> opened = Done{};
  if (meta_.begin_failed()) {
    opened = Failure{meta_.failure()};
  } else if (recovery_->journal() != 0) {
    opened = journal_->resume(recovery_->journal(), recovery_->next_sequence());
  } else {
    opened = journal_->begin(next_journal_);
    if (opened) ++next_journal_;
  }
  if (opened) return;
  if (!meta_.begin_failed()) warn_of_no_grants(opened.error());
  journal_->stay_closed(recovery_->next_sequence(), opened.error());
}

// A clean stop records the end of the journal. So the start detects a journal that was removed, or cut
// between two frames. From here on a crash of the machine may cut the journal again, and without a journal
// even the end of the process loses changes.
Result<Done> Store::check_end(Horizon horizon) {
  const Meta meta = meta_.on_disk();
  if (recovery_->next_sequence() >= meta.journal_sequence) {
    const std::string boot_id = lossless_ ? boot_id_ : "";
    const bool is_on_disk =
        !meta.id.empty() && !meta_.begin_failed() && meta.journal_sequence == 0 && meta.boot_id == boot_id;
    if (is_on_disk) return Done{};
    const std::string id = meta.id.empty() ? random_hex(kFolderIdDigits) : meta.id;
    Result<Done> begun = meta_.begin(id, engine_->tokens().issued(), horizon, boot_id, clock());
    if (!begun) warn_of_no_grants(begun.error());
    return Done{};
  }
  return Failure{fmt::format(
      "{}: the journal ends before record {}, but the last stop left it at record {}: {} records are "
      "missing. Restore the journals, or run `holdfast check --repair {}/meta` to start without them",
      files_->path(), recovery_->next_sequence(), meta.journal_sequence,
      meta.journal_sequence - recovery_->next_sequence(), files_->path())};
}

// Logs a change of the wall clock, which explains unexpected deadlines of holds.
void Store::log_clock(const Now& now) const {
  constexpr int64_t kLoggedMs = 1000;
  const int64_t moved_ms = now.ahead_ms() - first_ahead_ms_;
  if (std::abs(moved_ms) < kLoggedMs) return;
  log_line(
      LogLevel::kNotice,
      fmt::format("the wall clock was moved by {} ms since the machine's start; locks keep their expiry",
                  moved_ms));
}

// Holders may still use holds that a crash of the machine has lost. Grants nothing until these have
// expired.
void Store::recover_if_needed(const Now& now) {
  if (options_.recovery_wait_ms == 0) return;
  const int64_t left_ms = meta_.on_disk().horizon_boot_ms - now.mono.count;
  if (lossless_ || left_ms <= 0) return;
  const int64_t wait_ms = std::min(left_ms, static_cast<int64_t>(options_.recovery_wait_ms));
  engine_->availability().recovering_until = now.mono + DurationMs{wait_ms};
  log_line(LogLevel::kWarning,
           fmt::format("recovery wait: the last stop may have lost locks that are "
                       "still in use; no new locks are granted for {} ms",
                       wait_ms),
           {{"wait_ms", wait_ms}});
}

}  // namespace holdfast
