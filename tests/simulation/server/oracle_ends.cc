// Which states the next start may find, after each kind of end.
#include <algorithm>

#include "durations.h"
#include "oracle.h"

namespace holdfast::simulation {
// The last state that a sync in each `fsync-interval` has covered, if the disk did not fail.
size_t Oracle::synced_by_time(int64_t now_us, int64_t sync_us) const {
  if (trouble_ || !loaded_ || options_->appendonly != "yes" || options_->appendfsync == "no")
    return synced_;
  constexpr int64_t kSlackUs = 500'000;
  const int64_t by_us =
      now_us - static_cast<int64_t>(options_->fsync_interval_ms) * kMsUs - 4 * sync_us - kSlackUs;
  if (by_us < fsync_since_us_) return synced_;
  size_t state = synced_;
  while (state < last() && history_[state + 1].at_us <= by_us) ++state;
  return state;
}

std::string Oracle::ended(End end, int64_t now_us, int64_t sync_us) {
  constexpr int64_t kFirstSyncUs = 1'000'000;  // of a server that begins to sync, at most
  fsync_is_new_ = now_us < fsync_since_us_ + kFirstSyncUs + 4 * sync_us;
  may_wait_ = may_wait_ || end == End::kCrashed || may_lose(end);
  if (!history_.empty()) {
    synced_ = std::max(synced_, synced_by_time(now_us, sync_us));
    keep_promised_holds(end);
    if (loaded_) allow_after_stop();
    if (loaded_ && end == End::kStopped && !may_lose(end)) {
      lowest_ = highest_ = synced_ = last();
      note_clock();
      trouble_ = false;
    }
    if (end == End::kCrashed) allow_after_crash();
    if (lowest_ <= restored_) lowest_ = std::min(lowest_, restored_from_);
  }
  if (end == End::kCrashed) {
    crashed_ = true;
    fuzzy_ = fuzzy_ || wall_set_;
    wall_set_ = trouble_ = false;
  }
  options_ = nullptr;
  loaded_ = false;
  return "";
}

// What the kernel has: with a journal all that a reply promised, else the snapshot.
void Oracle::allow_after_stop() {
  highest_ = last();
  lowest_ = written_;
  if (options_ == nullptr || options_->appendonly == "yes") return;
  lowest_ = placed_;
  if (!no_save_ || options_->save.empty()) highest_ = placed_;
}

void Oracle::allow_after_crash() { lowest_ = std::min(lowest_, synced_); }

// Whether the settings allow that an end like this loses something.
bool Oracle::may_lose(End end) const {
  const bool journal = options_ != nullptr && options_->appendonly == "yes";
  switch (end) {
    case End::kStopped:
      return !journal && (no_save_ || options_->save.empty());
    case End::kFailed:
    case End::kKilled:
      return !journal;
    case End::kCrashed:
      // On a disk that fails a start cannot make durable what it restores, and grants nothing.
      return !journal || options_->appendfsync != "always" || fsync_is_new_ ||
             (trouble_ && synced_ < restored_);
  }
  return true;
}

// The earliest deadline since the last reply: a later one may not have been promised. 0: the hold was one
// of a session.
int64_t Oracle::promised_deadline_ms(const Record& hold) const {
  int64_t deadline_ms = hold.deadline_ms;
  for (size_t i = answered_; i < history_.size(); ++i) {
    for (const Record& r : history_[i].view) {
      if (r.owner != hold.owner || r.token != hold.token) continue;
      if (r.session) return 0;
      if (r.deadline_ms < 0) continue;
      deadline_ms = deadline_ms < 0 ? r.deadline_ms : std::min(deadline_ms, r.deadline_ms);
    }
  }
  return deadline_ms;
}

void Oracle::keep_promised_holds(End end) {
  if (!loaded_) {  // without a server, the machine's crash loses unsynced data of the last one
    if (end == End::kCrashed && (options_ != nullptr || synced_ < last())) may_lose_promised();
    return;
  }
  has_horizon_ = options_->recovery_wait_ms > 0;
  promised_.clear();
  for (const Record& record : view()) {
    const bool told = told_.contains({record.key, record.owner, record.token});
    if (!told || record.session) continue;
    promised_.push_back(record);
    promised_.back().deadline_ms = promised_deadline_ms(record);
  }
  promised_all_ = true;
  if (may_lose(end)) may_lose_promised();
}

// Without a recovery wait the server does not write down until when lost holds last. On a disk that fails
// it cannot do that for the holds that it has restored; a reply about a hold waits for it.
void Oracle::may_lose_promised() {
  promised_all_ = false;
  if (!has_horizon_) return promised_.clear();
  if (!trouble_ || history_.empty()) return;
  const View& restored = history_[std::min(restored_, last())].view;
  std::erase_if(promised_, [&](const Record& hold) {
    return std::ranges::any_of(restored, [&](const Record& r) {
      return r.owner == hold.owner && r.token == hold.token && r.deadline_ms == hold.deadline_ms;
    });
  });
}

}  // namespace holdfast::simulation
