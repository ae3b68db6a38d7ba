// Reads the folder in the loop's idle time, and checks that nothing is missing at its end.
#include "io/disk/folder_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "io/os/host_info.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

// Without meta a crash of the machine is possible, too, but the start drops no journal on that ground.
Recovery::Rules rules_of(const Options& options, const EarlierRun& past) {
  return {options.skip_unknown == "yes", past.is_lossless() || !past.has_meta(), past.has_meta(),
          past.stopped_cleanly()};
}

}  // namespace

void warn_of_no_grants(const std::string& why) {
  log_line(LogLevel::kWarning, fmt::format("{}; no new locks are granted until it works", why));
}

FolderLoad::FolderLoad(DataFolder& folder, EarlierRun past, std::function<void(Result<Done>)> done)
    : folder_(folder),
      past_(std::move(past)),
      recovery_(folder.files(), folder.engine(), folder.now(), rules_of(folder.options(), past_)),
      began_ms_(folder.now().mono.count),
      logged_ms_(began_ms_),
      done_(std::move(done)),
      idle_(folder.loop(), [this] { continue_reading(); }) {
  idle_.start();
}

void FolderLoad::continue_reading() {
  Result<bool> all = step();
  if (all && !*all) return;
  idle_.stop();
  const std::function<void(Result<Done>)> done = done_;  // it may destroy this object
  done(all ? finish() : Result<Done>(Failure{all.error()}));
}

Result<bool> FolderLoad::step() {
  constexpr int64_t kStepMs = 5;
  const int64_t until_ms = folder_.now().mono.count + kStepMs;
  while (folder_.now().mono.count < until_ms) {
    Result<bool> all = recovery_.step();
    if (!all || *all) return all;
  }
  log_progress(until_ms);
  return false;
}

uint64_t FolderLoad::percent() const {
  const uint64_t total = recovery_.total_bytes();
  return total == 0 ? 0 : std::min<uint64_t>(100, recovery_.read_bytes() * 100 / total);
}

void FolderLoad::log_progress(int64_t now_ms) {
  constexpr int64_t kEveryMs = 2000;
  if (now_ms - logged_ms_ < kEveryMs) return;
  logged_ms_ = now_ms;
  constexpr uint64_t kMiB = uint64_t{1} << 20U;
  log_line(LogLevel::kNotice,
           fmt::format("{}: loading: {} of {} MiB read, {} keys, {} journal records", folder_.path(),
                       recovery_.read_bytes() / kMiB, recovery_.total_bytes() / kMiB, recovery_.keys(),
                       recovery_.frames()));
}

Result<Done> FolderLoad::finish() {
  const Now now = folder_.now();
  const Meta& meta = folder_.meta().on_disk();
  // A folder of which only meta is left has lost all holds. A new journal must not hide that.
  const bool held = meta.horizon_boot_ms > now.mono.count;
  if (past_.has_meta() && !past_.stopped_cleanly() && held && recovery_.found_nothing())
    past_.record_loss();
  Horizon horizon{meta.horizon_ms, meta.horizon_boot_ms};
  // An empty file in place of the journal that the snapshot names: its records are lost.
  const bool emptied = past_.is_lossless() && recovery_.misses_named_journal();
  if (emptied) past_.record_loss();
  if (emptied || (!past_.is_lossless() && !past_.has_meta()))
    horizon = bounded(Horizon::never(), folder_.options().recovery_wait_ms, now);
  if (Result<Done> whole = check_end(horizon); !whole) return whole;
  // The check may have waited for the disk: the grace of sessions counts from now on.
  folder_.engine().keep_journal();  // first, because the ends of SESSION holds are changes, too
  folder_.engine().finish_loading(folder_.now());
  folder_.set_next_journal(recovery_.next_journal());
  open_journal();
  JournalWriter& journal = folder_.journal();
  if (recovery_.may_lack_bytes() && !journal.sync_failed()) journal.distrust();
  for (const uint64_t number : recovery_.stale())
    static_cast<void>(folder_.files().remove(journal_name(number)));
  log_loaded(now);
  recover_if_needed(now);
  return Done{};
}

void FolderLoad::log_loaded(const Now& now) const {
  const int64_t took_ms = now.mono.count - began_ms_;
  log_line(LogLevel::kNotice,
           fmt::format("{}: loaded {} keys, {} journal records in {} ms", folder_.path(), recovery_.keys(),
                       recovery_.frames(), took_ms),
           {{"keys", recovery_.keys()}, {"journal_records", recovery_.frames()}, {"took_ms", took_ms}});
  if (const uint64_t skipped = recovery_.skipped_keys(); skipped > 0) {
    log_line(LogLevel::kWarning,
             fmt::format("skipped {} keys of unsupported types (--skip-unsupported-types)", skipped));
  }
  log_clock(now);
}

// A journal that cannot be opened is replaced by a new one, with a snapshot, as soon as the disk works.
void FolderLoad::open_journal() {
  MetaKeeper& meta = folder_.meta();
  Result<Done> opened = Done{};
  if (!folder_.journals()) {
    // The next snapshot's number is above that of the loaded one, as with journals.
    static_cast<void>(folder_.begin_journal());
    return;
  }
  if (meta.begin_failed()) {
    opened = Failure{meta.failure()};
  } else if (recovery_.journal() != 0) {
    opened = folder_.journal().resume(recovery_.journal(), recovery_.next_sequence());
  } else if (Result<uint64_t> begun = folder_.begin_journal(); !begun) {
    opened = Failure{begun.error()};
  }
  if (opened) return;
  if (!meta.begin_failed()) warn_of_no_grants(opened.error());
  folder_.journal().stay_closed(recovery_.next_sequence(), opened.error());
}

// A clean stop records the end of the journal. So the start detects a journal that was removed, or cut
// between two frames. From here on a crash of the machine may cut the journal again, and without a journal
// even the end of the process loses changes.
Result<Done> FolderLoad::check_end(Horizon horizon) {
  const Meta meta = folder_.meta().on_disk();
  const uint64_t next = recovery_.next_sequence();
  if (next >= meta.journal_sequence) {
    const std::string kernel = past_.is_lossless() ? folder_.boot().kernel : "";
    const bool is_on_disk = !meta.id.empty() && !folder_.meta().begin_failed() &&
                            meta.journal_sequence == 0 && meta.boot_id == kernel;
    if (is_on_disk) return Done{};
    const std::string id = meta.id.empty() ? random_hex(kFolderIdDigits) : meta.id;
    Result<Done> begun =
        folder_.meta().begin(id, folder_.engine().tokens().issued(), horizon, kernel, folder_.clock());
    if (!begun) warn_of_no_grants(begun.error());
    return Done{};
  }
  return Failure{fmt::format(
      "{}: the journal ends before record {}, but the last stop left it at record {}: {} records are "
      "missing. Restore the journals, or run `holdfast check --repair {}/meta` to start without them",
      folder_.path(), next, meta.journal_sequence, meta.journal_sequence - next, folder_.path())};
}

// Logs a change of the wall clock, which explains unexpected deadlines of holds.
void FolderLoad::log_clock(const Now& now) const {
  constexpr int64_t kLoggedMs = 1000;
  const int64_t moved_ms = now.ahead_ms() - folder_.boot().first_ahead_ms;
  if (std::abs(moved_ms) < kLoggedMs) return;
  log_line(
      LogLevel::kNotice,
      fmt::format("the wall clock was moved by {} ms since the machine's start; locks keep their expiry",
                  moved_ms));
}

// Holders may still use holds that a crash of the machine has lost. Grants nothing until these have
// expired.
void FolderLoad::recover_if_needed(const Now& now) {
  const Options& options = folder_.options();
  if (options.recovery_wait_ms == 0) return;
  const int64_t left_ms = folder_.meta().on_disk().horizon_boot_ms - now.mono.count;
  if (past_.is_lossless() || left_ms <= 0) return;
  const int64_t wait_ms = std::min(left_ms, static_cast<int64_t>(options.recovery_wait_ms));
  folder_.engine().availability().recovering_until = now.mono + DurationMs{wait_ms};
  log_line(LogLevel::kWarning,
           fmt::format("recovery wait: the last stop may have lost locks that are "
                       "still in use; no new locks are granted for {} ms",
                       wait_ms),
           {{"wait_ms", wait_ms}});
}

}  // namespace holdfast
