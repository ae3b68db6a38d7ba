// States and promises.
#include "oracle.h"
#include "durations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::simulation {
namespace {

// The server bounds a deadline after a move of the wall clock; in hundred thousand years that shows.
bool is_same_time(int64_t a_ms, int64_t b_ms) {
  constexpr int64_t kFarMs = 1'000'000'000'000'000;
  return a_ms == b_ms || std::min(a_ms, b_ms) > kFarMs;
}

const Record* find(const View& view, const Record& record) {
  const auto at = std::ranges::find_if(view, [&](const Record& r) { return r.is_same(record); });
  return at == view.end() ? nullptr : &*at;
}

}  // namespace

void Oracle::begin(const Options& options, int64_t now_us) {
  options_ = &options;
  note_clock();
  loaded_ = no_save_ = unsynced_name_ = false;
  const int64_t end_ms = now_us / kMsUs + static_cast<int64_t>(options.recovery_wait_ms);
  wait_end_ms_ = std::min(wait_end_ms_.value_or(end_ms), end_ms);
  made_.clear();
  authors_.clear();
}

std::string Oracle::loaded(View view, int64_t now_us) {
  loaded_ = true;
  std::string wrong = compare(view, now_us);
  if (wrong.empty()) wrong = find_lost(view, now_us);
  tokens_known_.clear();
  for (const Record& record : view) tokens_known_.insert({record.db, record.key, record.token});
  for (const auto& [key, token] : std::exchange(largest_now_, {}))
    largest_[key] = std::max(largest_[key], token);
  // Sessions may have ended since. Like other changes, that is not on disk yet.
  if (fuzzy_) {
    for (size_t i = restored_from_; i < history_.size(); ++i)
      history_[i].view = on_disk(history_[i].view, view);
  }
  const size_t matched = restored_ = last();
  if (history_.empty() || history_.back().view != view) history_.push_back({std::move(view), now_us});
  for (size_t i = synced_ + 1; i < history_.size(); ++i) history_[i].at_us = now_us;
  written_ = answered_ = placed_ = pending_ = matched;
  if (crashed_ || forgotten_) synced_ = matched;
  unknown_sessions_ = (unknown_sessions_ || forgotten_) && options_->session_grace_ms == 0;
  crashed_ = forgotten_ = fuzzy_ = false;
  unseen_.reset();
  return wrong;
}

// The times are those of the found state. The disk still has the holds of sessions that this start has
// ended.
View Oracle::on_disk(const View& before, const View& found) const {
  View kept = found;
  if (options_->session_grace_ms > 0) return kept;
  for (const Record& record : before) {
    if (record.session && find(found, record) == nullptr) kept.push_back(record);
  }
  return kept;
}

// Finds the state that the server has restored, and forgets the later ones.
std::string Oracle::compare(const View& found, int64_t now_us) {
  restored_from_ = 0;
  if (forgotten_) {
    history_.clear();
    return "";
  }
  const int64_t now_ms = now_us / kMsUs;
  for (size_t i = highest_ + 1; i > lowest_; --i) {
    if (!matches(history_[i - 1].view, found, now_ms)) continue;
    restored_from_ = lowest_;
    while (!matches(history_[restored_from_].view, found, now_ms)) ++restored_from_;
    history_.resize(i);
    synced_ = std::min(synced_, last());
    return "";
  }
  if (!unseen_ || *unseen_ < lowest_ || *unseen_ > highest_) return describe_mismatch(found, now_ms);
  history_.resize(*unseen_ + 1);
  history_.push_back({found, now_us});
  restored_from_ = last();
  synced_ = std::min(synced_, last());
  return "";
}

// Without a session grace, holds of sessions end at a start, and what ends them may be lost again: then
// they are not compared.
bool Oracle::matches(const View& before, const View& found, int64_t now_ms) const {
  const bool sessions = options_ != nullptr && options_->session_grace_ms > 0;
  const auto counts = [&](const Record& r) {
    if (r.ends_by(now_ms)) return false;
    return r.delay ? !begins_delay(before, r, now_ms) : sessions || !r.session;
  };
  for (const Record& record : before) {
    if (!counts(record)) continue;
    const Record* same = find(found, record);
    // A start ends a hold of a session, and nothing may write that down: the next start does it again.
    if (record.delay && same != nullptr && same->deadline_ms > record.deadline_ms) continue;
    if (same == nullptr && fuzzy_ && record.deadline_ms >= 0) continue;
    if (same == nullptr && follows(found, record, now_ms)) continue;
    if (same == nullptr || (!fuzzy_ && !is_same_time(same->deadline_ms, record.deadline_ms))) return false;
  }
  return std::ranges::all_of(found, [&](const Record& r) {
    const bool unknown = (fuzzy_ && r.deadline_ms >= 0) || (unknown_sessions_ && r.session);
    return !counts(r) || unknown || find(before, r) != nullptr;
  });
}

// Whether a hold of the key ends until the start, or by it: the lock-delay after it may replace the one
// before.
bool Oracle::begins_delay(const View& before, const Record& delay, int64_t now_ms) const {
  const bool sessions = options_ != nullptr && options_->session_grace_ms > 0;
  return std::ranges::any_of(before, [&](const Record& r) {
    const bool is_there = r.db == delay.db && r.key == delay.key && r.delay_ms > 0;
    return is_there && (r.ends_by(now_ms) || (r.session && !sessions));
  });
}

// Whether the lock-delay begins with the end of a hold that is due, but has not ended yet. The disk may
// still have the hold: while it fails, no record of the end reaches it.
bool Oracle::follows(const View& found, const Record& delay, int64_t now_ms) {
  if (!delay.delay) return false;
  return std::ranges::any_of(found, [&](const Record& r) {
    const bool is_due = r.db == delay.db && r.key == delay.key && r.delay_ms > 0 && r.ends_by(now_ms);
    return is_due && is_same_time(r.deadline_ms + r.delay_ms, delay.deadline_ms);
  });
}

std::string Oracle::describe_mismatch(const View& found, int64_t now_ms) const {
  std::string text =
      fmt::format("the server restored a state that none of the {} states {} to {} is, at {} ms:",
                  highest_ + 1 - lowest_, lowest_, highest_, now_ms);
  const View& before = history_[highest_].view;
  for (const Record& record : before) {
    const Record* same = find(found, record);
    if (same == nullptr || same->deadline_ms != record.deadline_ms)
      text += "\n#   before: " + record.text();
  }
  for (const Record& record : found) {
    const Record* same = find(before, record);
    if (same == nullptr || same->deadline_ms != record.deadline_ms)
      text += "\n#   now:    " + record.text();
  }
  return text;
}

// Holds that clients rely on and that the restart has lost: an error, or protected for a while.
std::string Oracle::find_lost(const View& found, int64_t now_us) {
  const int64_t now_ms = now_us / kMsUs;
  const int64_t end_ms = std::exchange(wait_end_ms_, std::nullopt).value_or(now_ms);
  for (Lost& lost : lost_) lost.until_ms = std::min(lost.until_ms, end_ms);
  for (const Record& hold : std::exchange(promised_, {})) {
    // It may have another deadline, or be where a change that was lost had moved it from.
    const bool is_there = std::ranges::any_of(
        found, [&](const Record& r) { return r.owner == hold.owner && r.token == hold.token; });
    if (hold.ends_by(now_ms) || is_there) continue;
    if (promised_all_ && !fuzzy_) return "a hold is lost that its holder relies on: " + hold.text();
    const int64_t until_ms = hold.deadline_ms < 0 ? end_ms : std::min(end_ms, hold.deadline_ms);
    lost_.push_back({hold, until_ms});
  }
  if (fuzzy_) lost_.clear();
  return "";
}

std::string Oracle::observe(View view, int64_t now_us) {
  is_new_ = history_.empty() || history_.back().view != view;
  if (!is_new_) return "";
  std::string wrong = check_new_holds(view);
  history_.push_back({std::move(view), now_us});
  return wrong;
}

// A hold that moved to another key keeps its token, and FENCE raises that of a hold. Neither is a grant.
std::string Oracle::check_new_holds(const View& view) {
  for (const Record& hold : view) {
    if (hold.token == 0 || !tokens_known_.insert({hold.db, hold.key, hold.token}).second) continue;
    const bool is_old =
        !history_.empty() && std::ranges::any_of(history_.back().view, [&](const Record& r) {
          return r.owner == hold.owner && (r.token == hold.token || r.key == hold.key);
        });
    if (is_old) continue;
    const auto before = largest_.find(hold.key);
    if (before != largest_.end() && hold.token <= before->second) {
      return fmt::format("a token is not above {}, which an earlier process gave to this key: {}",
                         before->second, hold.text());
    }
    if (std::string wrong = check_alone(view, hold); !wrong.empty()) return wrong;
  }
  return "";
}

std::string Oracle::check_alone(const View& view, const Record& hold) const {
  size_t holders = 0;
  uint32_t smallest = hold.capacity;
  const Record* other = nullptr;
  for (const Record& record : view)
    holders += record.db == hold.db && record.key == hold.key && !record.delay ? 1 : 0;
  for (const Lost& lost : lost_) {
    const Record& r = lost.hold;
    if (r.db != hold.db || r.key != hold.key || r.owner == hold.owner || lost.until_ms <= hold.since_ms)
      continue;
    ++holders;
    smallest = std::min(smallest, r.capacity);
    other = &r;
  }
  if (other == nullptr || holders <= smallest) return "";
  return fmt::format(
      "a lock is granted that another holder still uses, whose hold was lost:\n#   holder: {}\n"
      "#   granted: {}",
      other->text(), hold.text());
}

void Oracle::made_replies(uint64_t serial, uint64_t bytes) {
  std::vector<Made>& made = made_[serial];
  if (!made.empty() && made.back().bytes >= bytes) return;
  const bool shares = is_new_ && last() > 0;
  made.push_back({last(), bytes, shares});
  if (shares) ++authors_[last()];
}

void Oracle::sent(uint64_t serial, uint64_t bytes, bool refusing) {
  std::vector<Made>& made = made_[serial];
  // A reply that no observation saw as the last one promises what the one before does.
  size_t state = answered_;
  bool was_seen = false;
  while (!made.empty() && made.front().bytes <= bytes) {
    const Made reply = made.front();
    made.erase(made.begin());
    was_seen = reply.bytes == bytes;
    const bool others_left = reply.shares && --authors_[reply.state] > 0;
    state = reply.state - (others_left ? 1 : 0);
  }
  if (made.empty() && !was_seen) state = last();
  if (refusing || !loaded_) return;  // a start has promised nothing yet
  answered_ = std::max(answered_, state);
  if (options_->appendonly != "yes") return;
  written_ = std::max(written_, state);
  if (options_->appendfsync == "always") synced_ = std::max(synced_, state);
}

// The wait is allowed until a process has worked without one for a while.
std::string Oracle::check_wait(int64_t left_ms) const {
  if (left_ms <= 0) return "";
  if (!may_wait_) return fmt::format("a recovery wait of {} ms after a stop that lost nothing", left_ms);
  const auto most_ms = static_cast<int64_t>(options_->recovery_wait_ms);
  if (left_ms <= most_ms) return "";
  return fmt::format("a recovery wait of {} ms, longer than {} ms", left_ms, most_ms);
}

void Oracle::told(const Grant& grant) {
  told_.insert(grant);
  largest_now_[grant.key] = std::max(largest_now_[grant.key], grant.token);
}

void Oracle::snapshot_placed() {
  placed_ = pending_;
  unsynced_name_ = true;
}

void Oracle::folder_synced() {
  if (std::exchange(unsynced_name_, false)) synced_ = std::max(synced_, placed_);
}

void Oracle::forget() {
  forgotten_ = may_wait_ = true;
  largest_.clear();
  largest_now_.clear();
  promised_.clear();
  lost_.clear();
}

}  // namespace holdfast::simulation
