// Reads and replaces the file `meta`.
#include "io/disk/meta_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/types.h"
#include "io/os/jobs.h"
#include "io/os/log.h"

namespace holdfast {

namespace {

constexpr const char* kName = "meta";
// One minute: tokens follow the clock's microseconds, and grants alone exceed that pace in no stripe.
constexpr uint64_t kTokenLead = 60'000'000;
constexpr int64_t kHorizonLeadMs = 60'000;

Horizon led(Horizon h, int64_t ms) {
  const int64_t most = kNever.count;
  return {std::min(h.wall_ms + ms, most), std::min(h.boot_ms + ms, most)};
}

}  // namespace

Result<std::optional<Meta>> MetaKeeper::read() {
  Result<bool> there = files_.exists(kName);
  if (!there) return Failure{there.error()};
  if (!*there) return std::optional<Meta>{};
  Result<std::string> text = files_.read(kName);
  if (!text) return Failure{text.error()};
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty()) {
    if (is_newer_meta(*text)) {
      return Failure{fmt::format("{}/{}: {}: use that version", files_.path(), kName, wrong)};
    }
    return Failure{
        fmt::format("{0}/{1}: {2}. `holdfast check --repair {0}/{1}` rebuilds it, and the next "
                    "start has a recovery wait",
                    files_.path(), kName, wrong)};
  }
  return std::optional(meta);
}

Result<Done> MetaKeeper::begin(const std::string& id, const IssuedTokens& issued, Horizon horizon,
                               const std::string& boot_id, const SavedClock& clock,
                               uint64_t journal_sequence) {
  Meta meta;
  meta.id = id;
  meta.token_reserve = std::min(issued.largest + kTokenLead, kMaxToken);
  meta.token_max = issued.largest;
  meta.tokens_ahead = issued.ahead;
  meta.horizon_ms = horizon.wall_ms;
  meta.boot_id = boot_id;
  meta.clock_boot_id = clock.boot_id;
  meta.clock_ms = clock.ahead_ms;
  meta.horizon_boot_ms = horizon.boot_ms;
  meta.journal_sequence = journal_sequence;
  ahead_on_disk_ = issued.ahead_serial;
  boot_id_ = boot_id;
  return put(meta);
}

Result<Done> MetaKeeper::begin_again() {
  return begin_failed_ ? put(Meta(on_disk_)) : Result<Done>(Done{});
}

Result<Done> MetaKeeper::put(const Meta& meta) {
  Result<Done> written = write(meta, ++last_serial_);
  on_disk_ = meta;
  begin_failed_ = !written;
  begun_ = begin_failed_ ? Issued{} : covered_by(meta, ahead_on_disk_);
  failure_ = begin_failed_ ? written.error() : "";
  return written;
}

// Runs on the loop's thread or in a job. An older text never replaces a newer one: a late job writes
// nothing.
Result<Done> MetaKeeper::write(const Meta& meta, uint64_t serial) {
  const std::scoped_lock guard(write_mutex_);
  if (serial < written_serial_) return Done{};
  written_serial_ = serial;
  return files_.replace(kName, format_meta(meta));
}

// Writes well before the lead is used up, so that no reply waits for the disk. The lead of the horizon is
// at least the time left, so that longer holds need fewer writes.
void MetaKeeper::keep_ahead(const Tokens& tokens, Horizon holds, int64_t left_ms,
                            const std::function<void()>& done) {
  const uint64_t token = tokens.largest();
  const bool tokens_end =
      token + kTokenLead / 2 > on_disk_.token_reserve && on_disk_.token_reserve < kMaxToken;
  const bool ahead_ends = tokens.ahead_serial() > ahead_on_disk_;
  const bool horizon_ends = holds.boot_ms > 0 && !covers(led(holds, kHorizonLeadMs / 2));
  const bool booted = boot_id_ != on_disk_.boot_id;
  const bool failed = !failure_.empty();
  if (writing_ || (!tokens_end && !ahead_ends && !horizon_ends && !booted && !failed)) return;
  auto meta = std::make_shared<Meta>(on_disk_);
  IssuedTokens issued = tokens.issued();
  meta->token_max = token;
  meta->tokens_ahead = std::move(issued.ahead);
  meta->boot_id = boot_id_;
  meta->token_reserve = std::max(meta->token_reserve, std::min(token + kTokenLead, kMaxToken));
  if (holds.boot_ms > 0) {
    const Horizon ahead = led(holds, std::max(kHorizonLeadMs, left_ms));
    meta->horizon_ms = std::max(meta->horizon_ms, ahead.wall_ms);
    meta->horizon_boot_ms = std::max(meta->horizon_boot_ms, ahead.boot_ms);
  }
  auto why = std::make_shared<std::string>();
  writing_ = true;
  begun_ = covered_by(*meta, issued.ahead_serial);
  const uint64_t serial = ++last_serial_;
  run_job(
      loop_,
      [this, meta, serial, why] {
        Result<Done> written = write(*meta, serial);
        if (!written) *why = written.error();
      },
      [this, meta, serial, why, done, ahead = issued.ahead_serial] {
        writing_ = false;
        if (serial != last_serial_) return done();  // begin() or end() has written a newer text
        if (why->empty()) {
          on_disk_ = *meta;
          ahead_on_disk_ = ahead;
          begin_failed_ = false;
        }
        if (!why->empty() && *why != failure_) {
          log_line(LogLevel::kWarning, fmt::format("{}; no new locks are granted until it works", *why));
        }
        failure_ = *why;
        done();
      });
}

void MetaKeeper::leave_folder() {
  const std::scoped_lock guard(write_mutex_);
  written_serial_ = ++last_serial_;
}

Result<Done> MetaKeeper::end(const IssuedTokens& issued, bool clean, Horizon lost,
                             uint64_t journal_sequence) {
  Meta meta = on_disk_;
  meta.journal_sequence = clean ? journal_sequence : 0;
  meta.token_max = meta.token_reserve = std::max(issued.largest, meta.token_max);
  meta.tokens_ahead = issued.ahead;
  meta.clean = clean;
  if (!clean) {
    meta.horizon_ms = lost.wall_ms;
    meta.horizon_boot_ms = lost.boot_ms;
  }
  return write(meta, ++last_serial_);
}

}  // namespace holdfast
