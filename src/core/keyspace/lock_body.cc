// Changes the holders of a lock and their indexes together.
#include "core/keyspace/lock_body.h"

#include <cassert>

namespace holdfast {

LockBody::~LockBody() {
  for (const auto& [owner, holder] : by_owner_) {
    counts_.remove(owner);
    counts_.note_bytes -= holder->attachment.note.size();
  }
  capacities_.clear();
  count_mode();
}

const Holder* LockBody::find(std::string_view owner) const {
  const auto it = by_owner_.find(owner);
  return it == by_owner_.end() ? nullptr : it->second.get();
}

const Holder* LockBody::add(Holder holder) {
  assert(find(holder.owner) == nullptr);
  auto owned = std::make_unique<Holder>(std::move(holder));
  Holder* h = owned.get();
  by_owner_.emplace(std::string_view(h->owner), std::move(owned));
  counts_.add(h->owner);
  index(h);
  count_mode();
  return h;
}

void LockBody::count_mode() {
  Counted mode = Counted::kNot;
  if (!capacities_.empty()) {
    mode = capacities_.begin()->first == kShared ? Counted::kAsShared : Counted::kAsSemaphore;
  }
  if (mode == counted_) return;
  if (counted_ != Counted::kNot) --(counted_ == Counted::kAsShared ? counts_.shared : counts_.semaphores);
  if (mode != Counted::kNot) ++(mode == Counted::kAsShared ? counts_.shared : counts_.semaphores);
  counted_ = mode;
}

void LockBody::remove(const Holder* holder) {
  unindex(holder);
  counts_.remove(holder->owner);
  by_owner_.erase(std::string_view(holder->owner));
  count_mode();
}

// Returns the holder for changes. Callers have only a pointer to const, because the indexes must follow
// every change.
Holder* LockBody::own(const Holder* holder) { return by_owner_.find(holder->owner)->second.get(); }

void LockBody::count(const Attachment& a) {
  listeners_ += a.async ? 1 : 0;
  counts_.note_bytes += a.note.size();
}

void LockBody::discount(const Attachment& a) {
  listeners_ -= a.async ? 1 : 0;
  counts_.note_bytes -= a.note.size();
}

void LockBody::index(Holder* holder) {
  by_deadline_.emplace(holder->deadline, rank(holder));
  by_token_.emplace(rank(holder), holder);
  ++capacities_[holder->capacity];
  count(holder->attachment);
}

void LockBody::unindex(const Holder* holder) {
  by_deadline_.erase({holder->deadline, rank(holder)});
  by_token_.erase(rank(holder));
  discount(holder->attachment);
  const auto it = capacities_.find(holder->capacity);
  if (--it->second == 0) capacities_.erase(it);
}

void LockBody::set_deadline(const Holder* holder, TimeMs deadline, DurationMs ttl, TimeMs renewed) {
  Holder* h = own(holder);
  h->ttl = ttl;
  h->renewed = renewed;
  if (h->deadline == deadline) return;
  by_deadline_.erase({h->deadline, rank(h)});
  h->deadline = deadline;
  by_deadline_.emplace(h->deadline, rank(h));
}

void LockBody::set_token(const Holder* holder, Token token) {
  Holder* h = own(holder);
  unindex(h);
  h->token = token;
  index(h);
}

void LockBody::set_capacity(const Holder* holder, Capacity capacity) {
  Holder* h = own(holder);
  unindex(h);
  h->capacity = capacity;
  index(h);
  count_mode();
}

void LockBody::set_attachment(const Holder* holder, Attachment a, ConnId client) {
  Holder* h = own(holder);
  discount(h->attachment);
  h->attachment = std::move(a);
  h->client = client;
  count(h->attachment);
}

Capacity LockBody::tightest(const Holder* except) const {
  for (const auto& [capacity, count] : capacities_) {
    if (except == nullptr || capacity != except->capacity || count > 1) return capacity;
  }
  return kShared;
}

const Holder* LockBody::first_to_expire() const {
  return by_deadline_.empty() ? nullptr : by_token_.at(by_deadline_.begin()->second);
}

TimeMs LockBody::last_deadline() const {
  return by_deadline_.empty() ? kNever : by_deadline_.rbegin()->first;
}

bool LockBody::has_token(Token token) const {
  const auto it = by_token_.lower_bound({token, {}});
  return it != by_token_.end() && it->first.first == token;
}

void LockBody::check_invariants() const {
  assert(by_token_.size() == size() && by_deadline_.size() == size());
  size_t counted = 0;
  for (const auto& [capacity, count] : capacities_) counted += count;
  assert(counted == size());
  for (const auto& [key, holder] : by_token_) {
    assert(rank(holder) == key && find(holder->owner) == holder && counts_.any(holder->owner));
    assert(by_deadline_.contains({holder->deadline, key}));
    assert(size() <= holder->capacity.count && "a holder admits no more than its capacity");
  }
}

}  // namespace holdfast
