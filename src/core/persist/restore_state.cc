// Restores values and holds.
#include "core/persist/restore_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/sha1.h"
#include "core/base/timers.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/keyspace/packed_hash.h"
#include "core/lock/holds.h"
#include "core/lock/keys.h"
#include "core/lock/sessions.h"
#include "core/lock/value_expiry.h"
#include "core/lock/waiting.h"
#include "core/state/attachments.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/lease_table.h"
#include "core/state/tokens.h"
#include "core/state/wait_queue.h"
#include "core/values/body_changes.h"
#include "core/values/field_expiry.h"
#include "core/values/hash_changes.h"
#include "core/values/moved_value.h"

namespace holdfast {

namespace {

constexpr size_t kMaxStringBytes = INT32_MAX;  // the largest proto-max-bulk-len

Holder restored_holder(const SavedHolder& saved, const Now& now) {
  Holder h;
  h.owner = saved.owner;
  h.token = saved.hold.token;
  h.capacity = saved.capacity;
  h.deadline = restored_deadline(saved.deadline_ms, now);
  h.ttl = saved.hold.ttl;
  h.held_since = restored_time(saved.hold.held_since_ms, now);
  h.renewed = h.deadline == kNever ? h.held_since : h.deadline - h.ttl;
  h.attachment.session = saved.hold.session;
  h.attachment.delay = saved.hold.delay;
  h.attachment.note = saved.hold.note;
  return h;
}

// Removes the former value of the key. If it returns nothing, the caller must insert the key; else it
// rewrites the entry.
Keyspace::Found clear_key(Context& ctx, DbIndex db, const Key& key) {
  Keyspace::Found f = ctx.keys(db).find(key);
  if (!f || type_of(*f) == EntryType::kNone) return f;
  remove_key(ctx, {db, f}, End::kDeleted);
  return ctx.keys(db).find(key);
}

Keyspace::Found put_entry(Context& ctx, DbIndex db, const Key& key, EntryType type,
                          std::string_view bytes) {
  Keyspace::Found f = clear_key(ctx, db, key);
  if (f) {
    ctx.keys(db).rewrite(f, type, bytes);
  } else {
    f = ctx.keys(db).find_or_insert(key, type, bytes, ctx.now.mono).first;
  }
  return f;
}

void follow(Context& ctx, KeyRef k) {
  const Holder* first = lock_body_of(*k)->first_to_expire();
  ctx.keys(k.db).set_deadline(k.f, first->deadline, first->ttl, first->renewed);
}

void join_body(Context& ctx, const Key& key, LockBody& body, const SavedHolder& saved) {
  if (const Holder* old = body.find(saved.owner)) body.remove(old);
  ctx.s.tokens.raise(key, saved.hold.token, near_token(ctx.s.config, ctx.now));
  body.add(restored_holder(saved, ctx.now));
}

// Gives the holders of a lock the notes that were recorded with their tokens.
void restore_notes(LockBody& body, const std::vector<SavedNote>& notes) {
  for (const SavedNote& saved : notes) {
    const Holder* h = body.find(saved.owner);
    if (h == nullptr || h->token != saved.token) continue;
    Attachment a = h->attachment;
    a.note = saved.note;
    body.set_attachment(h, std::move(a), h->client);
  }
}

void set_value_deadline(Context& ctx, KeyRef k, int64_t deadline_ms) {
  place_value_deadline(ctx, k, restored_deadline(deadline_ms, ctx.now));
}

// Gives a string without an attachment its deadline and hold.
void place_hold(Context& ctx, KeyRef k, const Key& key, int64_t deadline_ms, const SavedHold& hold) {
  k->token = hold.token.value & kMaxToken;
  ctx.s.tokens.raise(key, hold.token, near_token(ctx.s.config, ctx.now));
  const TimeMs deadline = restored_deadline(deadline_ms, ctx.now);
  const TimeMs since = restored_time(hold.held_since_ms, ctx.now);
  ctx.keys(k.db).set_deadline(k.f, deadline, hold.ttl, deadline == kNever ? since : deadline - hold.ttl);
  set_held_since(*k, since);
  Attachment a;
  a.session = hold.session;
  a.delay = hold.delay;
  a.lease = hold.lease;
  a.note = hold.note;
  if (a.any()) attach(ctx, k, std::move(a));
}

}  // namespace

Context restoring_context(EngineState& s, Now now, Effects& fx) {
  Context ctx{s, now, fx};
  ctx.due = TimeMs{-1};
  return ctx;
}

void restore_string(Context& ctx, DbIndex db, std::string_view key_bytes, std::string_view value,
                    int64_t deadline_ms, const SavedHold& hold) {
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = put_entry(ctx, db, key, EntryType::kString, value);
  place_hold(ctx, {db, f}, key, deadline_ms, hold);
}

bool restore_string_part(Context& ctx, DbIndex db, std::string_view key_bytes, size_t size, size_t at,
                         std::string_view part, int64_t deadline_ms, const SavedHold& hold) {
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = ctx.keys(db).find(key);
  if (!f || type_of(*f) != EntryType::kString || value_of(*f).size() != size) return false;
  if (at > kMaxStringBytes || part.size() > kMaxStringBytes) return false;
  take_attachment(ctx, {db, f});
  if (!part.empty()) put_string_part(ctx, {db, f}, key, at, part, {});
  place_hold(ctx, {db, f}, key, deadline_ms, hold);
  return true;
}

bool restore_move(Context& ctx, Record op, DbIndex db, std::string_view from, DbIndex to_db,
                  std::string_view to, int64_t deadline_ms, const SavedHold& hold) {
  Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(from));
  const bool movable = f && type_of(*f) != EntryType::kNone && type_of(*f) != EntryType::kLock;
  if (!movable || (db == to_db && from == to)) return false;
  f = op == Record::kMove ? move_value(ctx, {db, f}, to, {}) : copy_value(ctx, {db, f}, to_db, to, {});
  if (type_of(*f) == EntryType::kString) {
    place_hold(ctx, {to_db, f}, ctx.keys(to_db).key(to), deadline_ms, hold);
  } else {
    set_value_deadline(ctx, {to_db, f}, deadline_ms);
  }
  return true;
}

bool restore_lock(Context& ctx, DbIndex db, std::string_view key_bytes,
                  std::span<const SavedHolder> holders) {
  const bool fits = std::ranges::all_of(holders, [&](const SavedHolder& h) {
    return h.capacity > kExclusive && holders.size() <= h.capacity.count;
  });
  if (!fits || holders.empty()) return false;
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f;
  LockBody* const body = place_body(std::make_unique<LockBody>(ctx.s.holders), [&](std::string_view bytes) {
    f = put_entry(ctx, db, key, EntryType::kLock, bytes);
  });
  for (const SavedHolder& h : holders) join_body(ctx, key, *body, h);
  follow(ctx, {db, f});
  return true;
}

bool restore_holder(Context& ctx, DbIndex db, std::string_view key_bytes, const SavedHolder& holder) {
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = ctx.keys(db).find(key);
  if (!f || type_of(*f) != EntryType::kLock) return false;
  const LockBody& body = *lock_body_of(*f);
  const Holder* old = body.find(holder.owner);
  const size_t size = body.size() + (old == nullptr ? 1 : 0);
  if (holder.capacity <= kExclusive || size > std::min(holder.capacity, body.tightest(old)).count)
    return false;
  join_body(ctx, key, *lock_body_of(*f), holder);
  follow(ctx, {db, f});
  return true;
}

void restore_hash(Context& ctx, DbIndex db, std::string_view key_bytes,
                  std::span<const std::string_view> pairs, int64_t deadline_ms) {
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = clear_key(ctx, db, key);
  if (pairs.empty()) return;
  set_fields(ctx, {db, f}, key, pairs, {});
  f = ctx.keys(db).find(key);
  set_value_deadline(ctx, {db, f}, deadline_ms);
}

void restore_body(Context& ctx, DbIndex db, std::string_view key_bytes, EntryType type,
                  std::unique_ptr<ValueBody> body, int64_t deadline_ms) {
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = clear_key(ctx, db, key);
  put_body(ctx, {db, f}, key, type, std::move(body), {});
  f = ctx.keys(db).find(key);
  set_value_deadline(ctx, {db, f}, deadline_ms);
}

bool restore_deadline(Context& ctx, DbIndex db, std::string_view key, int64_t deadline_ms) {
  Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(key));
  // The hash of the record may be a packed one here: a snapshot does not keep the form of values.
  if (!f || !is_collection(*f)) return false;
  set_value_deadline(ctx, {db, f}, deadline_ms);
  return true;
}

bool restore_field_deadlines(Context& ctx, DbIndex db, std::string_view key,
                             std::span<const FieldDeadline> deadlines) {
  const Key found = ctx.keys(db).key(key);
  Keyspace::Found f = ctx.keys(db).find(found);
  if (!f || !is_hash(*f)) return false;
  put_field_deadlines(ctx, {db, f}, found, deadlines, {});
  return true;
}

void restore_token_record(Context& ctx, const TokenRecord& record) {
  const Key key = ctx.keys(record.db).key(record.key);
  ctx.s.tokens.raise(key, record.last, near_token(ctx.s.config, ctx.now));
  const Keyspace::Found f = ctx.keys(record.db).find(key);
  if (f && type_of(*f) == EntryType::kLock) restore_notes(*lock_body_of(*f), record.notes);
  if (!record.exclusive || !f || type_of(*f) != EntryType::kString) return;
  if (token_of(*f) >= record.exclusive->hold.token) return;  // a Holdfast snapshot, with a newer token
  const std::string owner(value_of(*f));
  const int64_t recorded_ms = record.exclusive->deadline_ms;
  const bool is_past =
      recorded_ms != kNoDeadline && recorded_ms < ctx.now.wall_us / 1000;  // it was an earlier hold
  if (is_past || sha1_hex(owner) != record.owner_sha1) return;
  SavedHold hold = record.exclusive->hold;
  hold.lease = 0;  // leases of the scripts do not exist here
  for (const SavedNote& saved : record.notes) {
    if (saved.owner == owner && saved.token == hold.token) hold.note = saved.note;
  }
  restore_string(ctx, record.db, record.key, owner, saved_deadline(deadline_of(*f), ctx.now), hold);
}

void restore_delay(Context& ctx, DbIndex db, std::string_view key_bytes, int64_t until_ms) {
  if (until_ms == kNoDeadline) return;  // a delay always ends
  const Key key = ctx.keys(db).key(key_bytes);
  Keyspace::Found f = ctx.keys(db).find(key);
  if (!f) f = ctx.keys(db).find_or_insert(key, EntryType::kNone, {}, ctx.now.mono).first;
  WaitQueue* q = queue_of(ctx, {db, f}, key);
  q->delay_until = std::max(restored_time(until_ms, ctx.now), TimeMs{1});  // 0 means no delay
  ctx.s.queues.mark_ready(q);
}

void restore_lease(Context& ctx, std::unique_ptr<LiveLease> lease, int64_t deadline_ms) {
  if (LiveLease* old = ctx.s.leases.find(lease->id)) {
    ctx.s.timers.cancel(old);
    ctx.s.leases.forget(old);
  }
  for (const std::string& key : lease->keys) {
    ctx.s.tokens.raise(ctx.keys(lease->db).key(key), lease->token, near_token(ctx.s.config, ctx.now));
  }
  LiveLease* revived = ctx.s.leases.restore(std::move(lease));
  ctx.s.timers.set(revived, restored_deadline(deadline_ms, ctx.now));
}

bool restore_lease_deadline(Context& ctx, std::string_view id, DurationMs ttl, int64_t deadline_ms) {
  LiveLease* const lease = ctx.s.leases.find(id);
  if (lease == nullptr) return false;
  lease->ttl = ttl;
  ctx.s.timers.set(lease, restored_deadline(deadline_ms, ctx.now));
  return true;
}

void finish_restoring(Context& ctx) {
  absl::btree_set<HoldName> holds;
  for (DbIndex db = 0; db < kDatabases; ++db) {
    for (const Handle h : ctx.keys(db).locks()) {
      const Entry& e = ctx.keys(db).entry(h);
      lock_body_of(e)->for_each([&](const Holder& holder) {
        if (holder.attachment.session) holds.insert({db, std::string(key_of(e)), holder.owner});
      });
    }
  }
  for (const auto& [name, attachment] : ctx.s.attachments) {
    if (!attachment.session) continue;
    const auto db = static_cast<DbIndex>(name >> 32U);
    const Entry& e = ctx.keys(db).entry(static_cast<Handle>(name));
    holds.insert({db, std::string(key_of(e)), std::string(value_of(e))});
  }
  end_session(ctx, {}, 0, std::move(holds));
}

}  // namespace holdfast
