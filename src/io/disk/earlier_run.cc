// What the files say about earlier runs. Changes nothing in the folder.
#include "io/disk/earlier_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/disk/meta_repair.h"
#include "io/disk/recovery.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

// Whether the folder has the data of a server. A dump of Redis alone is no such data.
Result<bool> has_data(Files& files) {
  Result<std::vector<uint64_t>> journals = list_journals(files);
  if (!journals) return Failure{journals.error()};
  Result<SnapshotFile> snapshot = find_snapshot(files);
  if (!snapshot) return Failure{snapshot.error()};
  return !journals->empty() || snapshot->journal.number != 0;
}

}  // namespace

Horizon bounded(Horizon horizon, uint64_t recovery_wait_ms, const Now& now) {
  const TimeMs until = now.mono + DurationMs{static_cast<int64_t>(recovery_wait_ms)};
  return {std::min(horizon.wall_ms, now.to_wall_ms(until)), std::min(horizon.boot_ms, until.count)};
}

// If only meta is missing, the past is unknown: its tokens, its last stop, and lost holds.
Result<EarlierRun> EarlierRun::read(Files& files, std::optional<Meta> meta, const std::string& kernel,
                                    const std::string& clock_id, const Now& now) {
  EarlierRun run;
  run.meta_ = std::move(meta);
  if (!run.meta_) {
    Result<bool> data = has_data(files);
    if (!data) return Failure{data.error()};
    run.unknown_ = *data;
  }
  if (run.unknown_) {
    log_line(LogLevel::kWarning,
             fmt::format("{} has data, but no file meta: tokens begin {} minutes ahead of the clock",
                         files.path(), kUnknownTokenLead / 60'000'000));
  }
  run.read_tokens(now);
  // While lost holds may be alive, another crash must not make the loss invisible.
  run.lossless_ = !run.unknown_ && (!run.meta_ || kept_writes(*run.meta_, kernel));
  run.same_clock_ = run.meta_ && !clock_id.empty() && run.meta_->clock_boot_id == clock_id;
  return run;
}

// Without data of an earlier run the floor is the clock, because no run issues more than one token in a
// microsecond. Tokens of a restored backup have moved on since, in the server that made it: see token_at().
void EarlierRun::read_tokens(const Now& now) {
  token_floor_ = static_cast<uint64_t>(now.wall_us) + (unknown_ ? kUnknownTokenLead : 0);
  if (!meta_) return;
  // There must be a next token.
  const auto present = [&](uint64_t token) {
    return std::max(token, std::min(token_at(*meta_, token, now.wall_us), kLastNamedToken));
  };
  token_floor_ = present(meta_->clean ? meta_->token_max : meta_->token_reserve);
  tokens_ahead_ = meta_->tokens_ahead;
  for (AheadToken& own : tokens_ahead_) own.token = present(own.token);
}

// After a reboot the wall clock determines it.
Horizon EarlierRun::horizon(const Now& now) const {
  if (!meta_ || meta_->clean) return {};
  if (meta_->horizon_ms >= kNever.count) return Horizon::never();
  if (same_clock_) return {meta_->horizon_ms, meta_->horizon_boot_ms};
  return {meta_->horizon_ms, std::max<int64_t>(0, meta_->horizon_ms - now.ahead_ms())};
}

}  // namespace holdfast
