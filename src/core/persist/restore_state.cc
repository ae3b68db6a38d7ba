// Values and holds as they were.
#include "core/persist/restore_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/sha1.h"
#include "core/keyspace/packed_hash.h"
#include "core/lock/hash_changes.h"
#include "core/lock/holds.h"
#include "core/lock/sessions.h"
#include "core/lock/waiting.h"

namespace holdfast {

namespace {

std::string_view pointer_bytes(const LockBody* const& body) {
  return {reinterpret_cast<const char*>(&body), sizeof body};
}

Holder revived_holder(const SavedHolder& saved, const Now& now) {
  Holder h;
  h.owner = saved.owner;
  h.token = saved.hold.token;
  h.capacity = saved.capacity;
  h.deadline = revived_deadline(saved.deadline_ms, now);
  h.ttl = saved.hold.ttl;
  h.held_since = revived_time(saved.hold.held_since_ms, now);
  h.renewed = h.deadline == kNever ? h.held_since : h.deadline - h.ttl;
  h.attachment.session = saved.hold.session;
  h.attachment.delay = saved.hold.delay;
  return h;
}

// Takes what the key was out of the way. What is put there next needs no look-up if that gives nothing.
Keyspace::Found clear_key(Turn& t, DbIndex db, const Key& key) {
  Keyspace::Found f = t.keys(db).find(key);
  if (!f || type_of(*f) == EntryType::kNone) return f;
  remove_key(t, db, f, End::kDeleted);
  return t.keys(db).find(key);
}

Keyspace::Found put_entry(Turn& t, DbIndex db, const Key& key, EntryType type, std::string_view bytes) {
  Keyspace::Found f = clear_key(t, db, key);
  if (f) {
    t.keys(db).rewrite(f, type, bytes);
  } else {
    f = t.keys(db).find_or_insert(key, type, bytes, t.now.mono).first;
  }
  return f;
}

void follow(Turn& t, DbIndex db, Keyspace::Found& f) {
  const Holder* first = lock_body_of(*f)->first_to_expire();
  t.keys(db).set_deadline(f, first->deadline, first->ttl, first->renewed);
}

void join_body(Turn& t, const Key& key, LockBody& body, const SavedHolder& saved) {
  if (const Holder* old = body.find(saved.owner)) body.remove(old);
  t.s.tokens.raise(key, saved.hold.token, near_token(t.s.config, t.now));
  body.add(revived_holder(saved, t.now));
}

void set_hash_deadline(Turn& t, DbIndex db, Keyspace::Found& f, int64_t deadline_ms) {
  const TimeMs deadline = revived_deadline(deadline_ms, t.now);
  const DurationMs ttl = deadline == kNever ? DurationMs{0} : deadline - t.now.mono;
  t.keys(db).set_deadline(f, deadline, {std::max<int64_t>(ttl.count, 0)}, t.now.mono);
}

}  // namespace

Turn reviving_turn(EngineState& s, Now now, Effects& fx) {
  Turn t{s, now, fx};
  t.due = TimeMs{-1};
  return t;
}

void revive_string(Turn& t, DbIndex db, std::string_view key_bytes, std::string_view value,
                   int64_t deadline_ms, const SavedHold& hold) {
  const Key key = t.keys(db).key(key_bytes);
  Keyspace::Found f = put_entry(t, db, key, EntryType::kString, value);
  f->token = hold.token.value & kMaxToken;
  t.s.tokens.raise(key, hold.token, near_token(t.s.config, t.now));
  const TimeMs deadline = revived_deadline(deadline_ms, t.now);
  const TimeMs since = revived_time(hold.held_since_ms, t.now);
  t.keys(db).set_deadline(f, deadline, hold.ttl, deadline == kNever ? since : deadline - hold.ttl);
  set_held_since(*f, since);
  Attachment a;
  a.session = hold.session;
  a.delay = hold.delay;
  a.lease = hold.lease;
  if (a.any()) attach(t, db, f, a);
}

bool revive_lock(Turn& t, DbIndex db, std::string_view key_bytes, std::span<const SavedHolder> holders) {
  const bool fits = std::ranges::all_of(holders, [&](const SavedHolder& h) {
    return h.capacity > kExclusive && holders.size() <= h.capacity.count;
  });
  if (!fits || holders.empty()) return false;
  const Key key = t.keys(db).key(key_bytes);
  const auto* body = new LockBody(t.s.holders);
  Keyspace::Found f = put_entry(t, db, key, EntryType::kLock, pointer_bytes(body));
  for (const SavedHolder& h : holders) join_body(t, key, *lock_body_of(*f), h);
  follow(t, db, f);
  return true;
}

bool revive_holder(Turn& t, DbIndex db, std::string_view key_bytes, const SavedHolder& holder) {
  const Key key = t.keys(db).key(key_bytes);
  Keyspace::Found f = t.keys(db).find(key);
  if (!f || type_of(*f) != EntryType::kLock) return false;
  const LockBody& body = *lock_body_of(*f);
  const Holder* old = body.find(holder.owner);
  const size_t size = body.size() + (old == nullptr ? 1 : 0);
  if (holder.capacity <= kExclusive || size > std::min(holder.capacity, body.tightest(old)).count)
    return false;
  join_body(t, key, *lock_body_of(*f), holder);
  follow(t, db, f);
  return true;
}

void revive_hash(Turn& t, DbIndex db, std::string_view key_bytes, std::span<const std::string_view> pairs,
                 int64_t deadline_ms) {
  const Key key = t.keys(db).key(key_bytes);
  Keyspace::Found f = clear_key(t, db, key);
  if (pairs.empty()) return;
  set_fields(t, db, key, f, pairs, {});
  f = t.keys(db).find(key);
  set_hash_deadline(t, db, f, deadline_ms);
}

void revive_hash(Turn& t, DbIndex db, std::string_view key_bytes, std::unique_ptr<HashBody> body,
                 int64_t deadline_ms) {
  const Key key = t.keys(db).key(key_bytes);
  Keyspace::Found f = clear_key(t, db, key);
  put_big_hash(t, db, key, f, std::move(body), {});
  f = t.keys(db).find(key);
  set_hash_deadline(t, db, f, deadline_ms);
}

void revive_note(Turn& t, const Note& note) {
  const Key key = t.keys(note.db).key(note.key);
  t.s.tokens.raise(key, note.last, near_token(t.s.config, t.now));
  const Keyspace::Found f = t.keys(note.db).find(key);
  if (!note.exclusive || !f || type_of(*f) != EntryType::kString) return;
  if (token_of(*f) >= note.exclusive->hold.token) return;  // the snapshot is our own, and said more of it
  const std::string owner(value_of(*f));
  const int64_t noted_ms = note.exclusive->deadline_ms;
  const bool is_past = noted_ms != kNoDeadline && noted_ms < t.now.wall_us / 1000;  // it was an earlier one
  if (is_past || sha1_hex(owner) != note.owner_sha1) return;
  SavedHold hold = note.exclusive->hold;
  hold.lease = 0;  // leases of the scripts are none here
  revive_string(t, note.db, note.key, owner, saved_deadline(deadline_of(*f), t.now), hold);
}

void revive_delay(Turn& t, DbIndex db, std::string_view key_bytes, int64_t until_ms) {
  if (until_ms == kNoDeadline) return;  // a delay always ends
  const Key key = t.keys(db).key(key_bytes);
  Keyspace::Found f = t.keys(db).find(key);
  if (!f) f = t.keys(db).find_or_insert(key, EntryType::kNone, {}, t.now.mono).first;
  WaitQueue* q = queue_of(t, db, key, f);
  q->delay_until = std::max(revived_time(until_ms, t.now), TimeMs{1});  // 0 would be no delay
  t.s.queues.mark_ready(q);
}

void revive_lease(Turn& t, std::unique_ptr<LiveLease> lease, int64_t deadline_ms) {
  if (LiveLease* old = t.s.leases.find(lease->id)) {
    t.s.timers.cancel(old);
    t.s.leases.forget(old);
  }
  for (const std::string& key : lease->keys) {
    t.s.tokens.raise(t.keys(lease->db).key(key), lease->token, near_token(t.s.config, t.now));
  }
  LiveLease* revived = t.s.leases.restore(std::move(lease));
  t.s.timers.set(revived, revived_deadline(deadline_ms, t.now));
}

void conclude_revival(Turn& t) {
  absl::btree_set<HoldName> holds;
  for (DbIndex db = 0; db < kDatabases; ++db) {
    for (const Handle h : t.keys(db).locks()) {
      const Entry& e = t.keys(db).entry(h);
      lock_body_of(e)->for_each([&](const Holder& holder) {
        if (holder.attachment.session) holds.insert({db, std::string(key_of(e)), holder.owner});
      });
    }
  }
  for (const auto& [name, attachment] : t.s.attachments) {
    if (!attachment.session) continue;
    const auto db = static_cast<DbIndex>(name >> 32U);
    const Entry& e = t.keys(db).entry(static_cast<Handle>(name));
    holds.insert({db, std::string(key_of(e)), std::string(value_of(e))});
  }
  end_session(t, {}, 0, std::move(holds));
}

}  // namespace holdfast
