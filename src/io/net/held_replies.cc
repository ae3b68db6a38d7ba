// Groups of replies that wait for the disk.
#include "io/net/held_replies.h"

#include <algorithm>

namespace holdfast {

namespace {

// A promise that is kept when both are.
Store::Promise both(const Store::Promise& a, const Store::Promise& b) {
  Store::Promise promise = b;
  promise.journal = std::max(a.journal, b.journal);
  Issued& issued = promise.meta;
  issued.token = std::max(a.meta.token, b.meta.token);
  issued.ahead_serial = std::max(a.meta.ahead_serial, b.meta.ahead_serial);
  issued.holds.wall_ms = std::max(a.meta.holds.wall_ms, b.meta.holds.wall_ms);
  issued.holds.boot_ms = std::max(a.meta.holds.boot_ms, b.meta.holds.boot_ms);
  return promise;
}

}  // namespace

bool HeldReplies::joins_last(const Store::Promise& promise) const {
  if (groups_.empty()) return false;
  const Store::Promise& last = groups_.back().promise;
  return groups_.size() >= kMaxGroups ||
         (last.journal_write == promise.journal_write && last.meta_write == promise.meta_write);
}

uint64_t HeldReplies::add(const Store::Promise& promise, ConnId id, uint64_t end, uint64_t last) {
  if (joins_last(promise)) {
    groups_.back().promise = both(groups_.back().promise, promise);
  } else {
    groups_.push_back({promise, {}, next_});
  }
  Group& group = groups_.back();
  if (last >= group.first) {
    group.replies[last - group.first].end = end;
    return last;
  }
  group.replies.push_back({id, end});
  return next_++;
}

std::vector<HeldReplies::Reply> HeldReplies::take_kept(const Store& store, const Now& now) {
  std::vector<Reply> taken;
  while (!groups_.empty() && store.is_kept(groups_.front().promise, now)) {
    std::vector<Reply>& replies = groups_.front().replies;
    taken.insert(taken.end(), replies.begin(), replies.end());
    groups_.pop_front();
  }
  return taken;
}

std::vector<HeldReplies::Reply> HeldReplies::take_all() {
  std::vector<Reply> taken;
  for (const Group& group : groups_) taken.insert(taken.end(), group.replies.begin(), group.replies.end());
  groups_.clear();  // in most loop iterations there are none, and nothing is allocated
  return taken;
}

}  // namespace holdfast
