// Writes keys to an RDB file.
#include "core/persist/snapshot.h"

#include <algorithm>

#include "core/base/config.h"
#include "core/base/sha1.h"
#include "core/base/version.h"
#include "core/codec/hold_codec.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/lock_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/persist/payload.h"
#include "core/state/attachments.h"
#include "core/state/context.h"
#include "core/state/library_store.h"
#include "core/state/memory_use.h"
#include "core/state/tokens.h"
#include "core/values/hash_changes.h"

namespace holdfast {

namespace {

constexpr int64_t kDayMs = 24 * 3600 * 1000;
// While the disk is slow, the caller does not take the bytes. Keys that change then go to the waiting
// bytes, which are counted, and grow without a copy.
constexpr size_t kMostBytes = size_t{2} << 20U;

// Whether the loader could mistake the hash for a lock or a record.
bool looks_like_lock_or_record(std::string_view key, const HashView& hash) {
  return hash.find(kLockMarker) == kLockMarkerValue || key.starts_with(kTokenKeyPrefix);
}

}  // namespace

Snapshot::Snapshot(EngineState& s, Now now, uint64_t journal, bool follows)
    : s_(s), now_(now), aside_(s.memory.snapshot_bytes) {
  rdb_.header();
  rdb_.aux("redis-ver", kRedisVersion);
  rdb_.aux("redis-bits", "64");
  rdb_.aux("ctime", std::to_string(now.wall_us / 1000000));
  rdb_.aux("used-mem", std::to_string(used_memory_bytes(s)));
  rdb_.aux("holdfast-version", kHoldfastVersion);
  rdb_.aux(kAuxJournal, std::to_string(journal));
  if (follows) rdb_.aux(kAuxFollows, "1");
  const IssuedTokens issued = s.tokens.issued(true);
  rdb_.aux(kAuxTokens, std::to_string(issued.largest));
  for (const AheadToken& own : issued.ahead) rdb_.aux(kAuxAhead, std::to_string(own.token) + " " + own.key);
  if (!s.config.boot_id.empty()) rdb_.aux(kAuxClock, clock_text(present_clock(s.config, now)));
  rdb_.aux(kAuxRecords, side_records(s, now));
  for (const std::string_view code : library_codes(s)) rdb_.library(code);
  for (DbIndex number = 0; number < kDatabases; ++number) {
    const DbIndex place = s.db_at[number];
    Keyspace& keys = *s.dbs[place];
    if (keys.size() == 0) continue;
    keys_ += keys.live();
    parts_.push_back({&keys, place, number});
  }
  for (const Part& part : parts_) {
    part.keys->begin_save([this, &part](Handle h, const Entry& e) { return save(part, h, e); });
  }
}

Snapshot::~Snapshot() {
  for (const Part& part : parts_) part.keys->end_save();
}

bool Snapshot::step() {
  if (step_large()) return false;
  if (next_ < parts_.size() && parts_[next_].keys->save_step()) ++next_;
  if (next_ < parts_.size() || !large_.empty()) return false;
  rdb_.end();
  return true;
}

// Writes the next part of a large value, or of the keys that waited for its end. Returns false if there is
// neither.
bool Snapshot::step_large() {
  if (!in_large_ && !aside_.empty()) {
    aside_.move_some(out_);
    if (aside_.empty()) selected_ = std::exchange(selected_aside_, -1);
    return true;
  }
  if (large_.empty()) return false;
  if (!in_large_) select(large_.front()->number());
  in_large_ = !large_.front()->step(out_);
  if (!in_large_) large_.pop_front();
  return true;
}

void Snapshot::select(DbIndex number) {
  if (selected_ == number) return;
  selected_ = number;
  rdb_.select_db(number);
}

// Returns the number of bytes that the entry made.
size_t Snapshot::save(const Part& part, Handle h, const Entry& e) {
  if (type_of(e) == EntryType::kNone) return 0;
  ++saved_;
  const bool waits = in_large_ || !aside_.empty() || out_.size() >= kMostBytes;
  std::string* const aside = waits ? &aside_.end() : nullptr;
  const auto exchange = [&] {
    if (aside == nullptr) return;
    out_.swap(*aside);
    std::swap(selected_, selected_aside_);
  };
  exchange();
  const size_t before = out_.size();
  LargeValue::is_large(e) ? begin_large(part, e) : write(part, h, e);
  const size_t bytes = out_.size() - before;
  exchange();
  return bytes;
}

void Snapshot::begin_large(const Part& part, const Entry& e) {
  std::string head;
  out_.swap(head);
  begin_value(e, value_body_of(e)->size());
  out_.swap(head);
  large_.push_back(
      std::make_unique<LargeValue>(e, part.number, std::move(head), now_, s_.memory.snapshot_bytes));
}

// Writes what stands before the elements of a hash, list, set or sorted set.
void Snapshot::begin_value(const Entry& e, size_t elements) {
  if (is_hash(e)) {
    const HashView hash(e);
    if (looks_like_lock_or_record(key_of(e), hash)) rdb_.aux(kAuxPlain, "1");
    put_expiry(value_deadline_of(e));
    return begin_hash_value(rdb_, key_of(e), e, elements, now_);
  }
  put_expiry(deadline_of(e));
  if (type_of(e) == EntryType::kList) return rdb_.begin_list(key_of(e), elements);
  if (type_of(e) == EntryType::kZset) return rdb_.begin_zset(key_of(e), elements);
  rdb_.begin_set(key_of(e), elements);
}

void Snapshot::write(const Part& part, Handle h, const Entry& e) {
  select(part.number);
  switch (type_of(e)) {
    case EntryType::kString:
      return save_string(part, h, e);
    case EntryType::kLock:
      return save_lock(e);
    case EntryType::kHash:
    case EntryType::kBigHash:
      return save_hash(e);
    case EntryType::kSet:
      return save_set(e);
    case EntryType::kList:
      return save_list(e);
    case EntryType::kZset:
      return save_zset(e);
    case EntryType::kNone:
      break;
  }
}

void Snapshot::put_expiry(TimeMs deadline) {
  if (deadline != kNever) rdb_.expire_ms(saved_deadline(deadline, now_));
}

void Snapshot::save_string(const Part& part, Handle h, const Entry& e) {
  const auto it = e.attached ? s_.attachments.find(attachment_key(part.place, h)) : s_.attachments.end();
  const Attachment* a = it == s_.attachments.end() ? nullptr : &it->second;
  scratch_.clear();
  const SavedHold hold = saved_hold(token_of(e), ttl_of(e), held_since(e), a, now_);
  put_hold(scratch_, hold);
  rdb_.aux(kAuxHold, scratch_);
  put_expiry(deadline_of(e));
  rdb_.string(key_of(e), value_of(e));
  if (static_cast<int64_t>(hold.token.value) > now_.wall_us || !hold.note.empty())
    save_record_of_string(e, hold);
}

// Writes the token key of an exclusive hold.
void Snapshot::save_record_of_string(const Entry& e, const SavedHold& hold) {
  const int64_t deadline_ms = saved_deadline(deadline_of(e), now_);
  begin_record(key_of(e), hold.token, deadline_ms, hold.note.empty() ? 2 : 3);
  rdb_.field(kRecordOwner, sha1_hex(value_of(e)));
  rdb_.field(kRecordHold, holder_text({{}, kExclusive, deadline_ms, hold}));
  save_note(value_of(e), hold);
}

// Begins a token key with `fields` more fields. It expires as the scripts let it: one day after the hold's
// deadline or the token's time, whichever is later; never without a deadline.
void Snapshot::begin_record(std::string_view key, Token last, int64_t deadline_ms, size_t fields) {
  const auto token_ms = static_cast<int64_t>(last.value / 1000);
  if (deadline_ms != kNoDeadline) rdb_.expire_ms(std::max(deadline_ms, token_ms) + kDayMs);
  rdb_.begin_hash(token_key(key), fields + 2);
  rdb_.field(kRecordOf, key);
  rdb_.field(kRecordLast, std::to_string(last.value));
}

void Snapshot::save_note(std::string_view owner, const SavedHold& hold) {
  if (hold.note.empty()) return;
  scratch_ = kNotePrefix;
  rdb_.field(scratch_.append(owner), note_text(hold.token, hold.note));
}

void Snapshot::save_hash(const Entry& e) {
  begin_value(e, HashView(e).size());
  put_fields(rdb_, e, now_);
}

void Snapshot::save_set(const Entry& e) {
  begin_value(e, value_body_of(e)->size());
  body_of<SetBody>(e).for_each([&](std::string_view member) { rdb_.element(member); });
}

void Snapshot::save_list(const Entry& e) {
  const auto& list = body_of<ListBody>(e);
  begin_value(e, value_body_of(e)->size());
  for (auto at = list.first(); at.valid(); at.next()) rdb_.element(at.get());
}

// From the highest score down, as Redis writes it: so its insertions into a skip list are the fastest.
void Snapshot::save_zset(const Entry& e) {
  const auto& zset = body_of<ZsetBody>(e);
  begin_value(e, value_body_of(e)->size());
  zset.for_range(zset.size() - 1, zset.size(), true,
                 [&](std::string_view member, double score) { rdb_.scored_member(member, score); });
}

// The key expires with the last of its holders.
void Snapshot::save_lock(const Entry& e) {
  const LockBody& body = *lock_body_of(e);
  put_expiry(body.last_deadline());
  rdb_.begin_hash(key_of(e), body.size() + 1);
  rdb_.field(kLockMarker, kLockMarkerValue);
  body.for_each([&](const Holder& h) {
    scratch_ = kOwnerPrefix;
    rdb_.field(scratch_.append(h.owner), holder_text(saved_holder(h, now_)));
  });
  save_record_of_lock(e);
}

// Writes the token key of a lock, if one of its holds has a note.
void Snapshot::save_record_of_lock(const Entry& e) {
  const LockBody& body = *lock_body_of(e);
  size_t notes = 0;
  Token last;
  body.for_each([&](const Holder& h) {
    notes += h.attachment.note.empty() ? 0 : 1;
    last = std::max(last, h.token);
  });
  if (notes == 0) return;
  begin_record(key_of(e), last, saved_deadline(body.last_deadline(), now_), notes);
  body.for_each([&](const Holder& h) { save_note(h.owner, saved_holder(h, now_).hold); });
}

}  // namespace holdfast
