// Where keys become an RDB file.
#include "core/snapshot.h"

#include "core/hash_value.h"
#include "core/locks.h"
#include "core/saved.h"
#include "core/version.h"

namespace holdfast {

namespace {

// Whether loading the hash would take it for a lock.
bool looks_like_lock(const HashView& hash) { return hash.find(kLockMarker) == kLockMarkerValue; }

}  // namespace

Snapshot::Snapshot(EngineState& s, Now now, uint64_t journal) : s_(s), now_(now) {
  rdb_.header();
  rdb_.aux("redis-ver", kRedisVersion);
  rdb_.aux("redis-bits", "64");
  rdb_.aux("ctime", std::to_string(now.wall_us / 1000000));
  rdb_.aux("used-mem", std::to_string(used_memory_bytes(s)));
  rdb_.aux("holdfast-version", kHoldfastVersion);
  rdb_.aux(kAuxJournal, std::to_string(journal));
  rdb_.aux(kAuxTokens, std::to_string(s.tokens.largest()));
  rdb_.aux(kAuxRecords, side_records(s, now));
  for (DbIndex number = 0; number < kDatabases; ++number) {
    const DbIndex place = s.db_at[number];
    Keyspace& keys = *s.dbs[place];
    if (keys.size() == 0) continue;
    keys_ += keys.live();
    parts_.push_back({&keys, place, number});
  }
  for (const Part& part : parts_) {
    part.keys->begin_save([this, &part](Handle h, const Entry& e) { save(part, h, e); });
  }
}

Snapshot::~Snapshot() {
  for (const Part& part : parts_) part.keys->end_save();
}

bool Snapshot::step() {
  if (next_ < parts_.size() && parts_[next_].keys->save_step()) ++next_;
  if (next_ < parts_.size()) return false;
  rdb_.end();
  return true;
}

void Snapshot::save(const Part& part, Handle h, const Entry& e) {
  if (type_of(e) == EntryType::kNone) return;
  ++saved_;
  if (selected_ != part.number) {
    selected_ = part.number;
    rdb_.select_db(part.number);
  }
  if (type_of(e) == EntryType::kString) return save_string(part, h, e);
  if (type_of(e) == EntryType::kLock) return save_lock(e);
  save_hash(e);
}

void Snapshot::put_expiry(TimeMs deadline) {
  if (deadline != kNever) rdb_.expire_ms(saved_deadline(deadline, now_));
}

void Snapshot::save_string(const Part& part, Handle h, const Entry& e) {
  const auto it = e.attached ? s_.attachments.find(attachment_key(part.place, h)) : s_.attachments.end();
  const Attachment* a = it == s_.attachments.end() ? nullptr : &it->second;
  scratch_.clear();
  put_hold(scratch_, saved_hold(token_of(e), ttl_of(e), held_since(e), a, now_));
  rdb_.aux(kAuxHold, scratch_);
  put_expiry(deadline_of(e));
  rdb_.string(key_of(e), value_of(e));
}

void Snapshot::save_hash(const Entry& e) {
  const HashView hash(e);
  if (looks_like_lock(hash)) rdb_.aux(kAuxPlain, "1");
  put_expiry(deadline_of(e));
  rdb_.begin_hash(key_of(e), hash.size());
  hash.for_each([&](std::string_view field, std::string_view value) { rdb_.field(field, value); });
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
}

}  // namespace holdfast
