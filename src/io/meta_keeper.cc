// Reading and replacing the file `meta`.
#include "io/meta_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/types.h"
#include "io/jobs.h"
#include "io/log.h"

namespace holdfast {

namespace {

constexpr const char* kName = "meta";
// A minute, at the pace of the clock's microseconds, which no stripe of tokens exceeds by grants alone.
constexpr uint64_t kTokenLead = 60'000'000;
constexpr int64_t kHorizonLeadMs = 60'000;

Horizon led(Horizon h, int64_t ms) { return {h.wall_ms + ms, h.boot_ms + ms}; }

}  // namespace

Result<std::optional<Meta>> MetaKeeper::read() {
  Result<bool> there = files_.exists(kName);
  if (!there) return Failure{there.error()};
  if (!*there) return std::optional<Meta>{};
  Result<std::string> text = files_.read(kName);
  if (!text) return Failure{text.error()};
  Meta meta;
  if (const std::string wrong = parse_meta(*text, meta); !wrong.empty()) {
    return Failure{fmt::format("{}/{}: {}", files_.path(), kName, wrong)};
  }
  return std::optional(meta);
}

Result<Done> MetaKeeper::begin(const std::string& id, uint64_t floor, Horizon horizon,
                               const std::string& boot_id, const SavedClock& clock) {
  Meta meta;
  meta.id = id;
  meta.token_reserve = std::min(floor + kTokenLead, kMaxToken);
  meta.token_max = floor;
  meta.horizon_ms = horizon.wall_ms;
  meta.boot_id = boot_id;
  meta.clock_boot_id = clock.boot_id;
  meta.clock_ms = clock.ahead_ms;
  meta.horizon_boot_ms = horizon.boot_ms;
  Result<Done> written = files_.replace(kName, format_meta(meta));
  if (written) on_disk_ = meta;
  boot_id_ = boot_id;
  return written;
}

// Well before the lead is used up, so that nobody has to wait for the disk.
void MetaKeeper::keep_ahead(uint64_t token, Horizon holds, const std::function<void()>& done) {
  const bool tokens_end =
      token + kTokenLead / 2 > on_disk_.token_reserve && on_disk_.token_reserve < kMaxToken;
  const bool horizon_ends = holds.boot_ms > 0 && !covers(0, led(holds, kHorizonLeadMs / 2));
  const bool booted = boot_id_ != on_disk_.boot_id;
  if (writing_ || (!tokens_end && !horizon_ends && !booted)) return;
  auto meta = std::make_shared<Meta>(on_disk_);
  meta->token_max = token;
  meta->boot_id = boot_id_;
  meta->token_reserve = std::max(meta->token_reserve, std::min(token + kTokenLead, kMaxToken));
  if (holds.boot_ms > 0) {
    const Horizon ahead = led(holds, kHorizonLeadMs);
    meta->horizon_ms = std::max(meta->horizon_ms, ahead.wall_ms);
    meta->horizon_boot_ms = std::max(meta->horizon_boot_ms, ahead.boot_ms);
  }
  auto why = std::make_shared<std::string>();
  writing_ = true;
  run_job(
      loop_,
      [this, meta, why] {
        Result<Done> written = files_.replace(kName, format_meta(*meta));
        if (!written) *why = written.error();
      },
      [this, meta, why, done] {
        writing_ = false;
        if (why->empty()) on_disk_ = *meta;
        if (!why->empty() && *why != failure_) log_line(LogLevel::kWarning, *why);
        failure_ = *why;
        done();
      });
}

Result<Done> MetaKeeper::end(uint64_t token) {
  Meta meta = on_disk_;
  meta.token_max = meta.token_reserve = std::max(token, meta.token_max);
  meta.clean = true;
  return files_.replace(kName, format_meta(meta));
}

}  // namespace holdfast
