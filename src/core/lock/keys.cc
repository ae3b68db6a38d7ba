// Changes of values.
#include "core/lock/keys.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/page_pool.h"
#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/record_events.h"
#include "core/lock/value_expiry.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/memory_use.h"
#include "core/state/pubsub.h"
#include "core/state/wait_queue.h"
#include "core/state/watches.h"

namespace holdfast {

void place_value(Context& ctx, KeyRef k, const Key& key, EntryType type, std::string_view bytes) {
  Keyspace& keys = ctx.keys(k.db);
  const bool made = !k || type_of(*k) == EntryType::kNone;
  if (!k) {
    k.f = keys.find_or_insert(key, type, bytes, ctx.now.mono).first;
  } else {
    if (type_of(*k) > EntryType::kString) [[unlikely]] {
      if (type_of(*k) == EntryType::kLock) {
        const std::string copy(bytes);  // `bytes` may point into the removed entry
        remove_key(ctx, k, End::kOverwritten);
        k.f = keys.find(key);
        return place_value(ctx, k, key, type, copy);
      }
      forget_fields(ctx, k);
    }
    end_exclusive(ctx, k, End::kOverwritten, ctx.due);
    if (type_of(*k) == EntryType::kNone) keys.set_deadline(k.f, kNever, {0}, ctx.now.mono);
    keys.rewrite(k.f, type, bytes);
    k->token = 0;
    set_held_since(*k, ctx.now.mono);
  }
  if (made) notify(ctx, kNotifyNew, "new", k.db, key.bytes);
}

void put_value(Context& ctx, KeyRef k, const Key& key, EntryType type, std::string_view bytes,
               ConnId client) {
  place_value(ctx, k, key, type, bytes);
  record_value_change(ctx, k, client);
}

void record_value_change(Context& ctx, KeyRef k, ConnId client) {
  journal_key(ctx, k.db, key_of(*k));
  record_part_change(ctx, k, client);
}

void record_hold_change(Context& ctx, KeyRef k, ConnId client) {
  journal_hold(ctx, k.db, k.f);
  record_part_change(ctx, k, client);
}

void record_part_change(Context& ctx, KeyRef k, ConnId client) {
  set_client(*k, client);
  key_changed(ctx, k.db, key_of(*k));
  touch(ctx, k.db, *k);
}

// For subscribers of lock events a SET is a grant. Without subscribers the hold gets its token only on
// request.
static void notify_set(Context& ctx, KeyRef k) {
  if (ctx.s.pubsub.empty()) return;
  const Token token = exclusive_token(ctx, k);
  lock_event(ctx, key_of(*k), "granted", value_of(*k), token);
}

// The string is a new hold: records it, and notifies subscribers and the queue of the key.
static void notify_new_hold(Context& ctx, KeyRef k) {
  record_set_hold(ctx, k);
  notify_set(ctx, k);
  if (!k->has_queue) return;
  WaitQueue* q = ctx.s.queues.find(k.db, ctx.keys(k.db).key(key_of(*k)));
  q->new_holders.emplace_back(value_of(*k));
  ctx.s.queues.mark_ready(q);
}

void put_string(Context& ctx, KeyRef k, const Key& key, std::string_view value, ConnId client,
                Token token) {
  const bool same = k && type_of(*k) == EntryType::kString && value_of(*k) == value;
  if (same) return record_hold_change(ctx, k, client);
  put_value(ctx, k, key, EntryType::kString, value, client);
  k->token = token.value & kMaxToken;
  notify_new_hold(ctx, k);
}

void put_loose_string(Context& ctx, KeyRef k, const Key& key, Keyspace::LooseString string, ConnId client) {
  put_value(ctx, k, key, EntryType::kString, {}, client);
  ctx.keys(k.db).adopt_string(k.f, std::move(string));
  notify_new_hold(ctx, k);
}

void put_string_part(Context& ctx, KeyRef k, const Key& key, size_t at, std::string_view part,
                     ConnId client) {
  const bool live = k && type_of(*k) == EntryType::kString;
  const std::string_view value = live ? value_of(*k) : std::string_view();
  const size_t before = value.size();
  const size_t size = std::max(before, at + part.size());
  if (size <= kMaxInlineValue) {
    std::string changed(value);
    changed.resize(size);
    changed.replace(at, part.size(), part);
    return put_string(ctx, k, key, changed, client);
  }
  if (size == before && value.substr(at, part.size()) == part) return record_hold_change(ctx, k, client);
  if (live) {
    end_exclusive(ctx, k, End::kOverwritten, ctx.due);
  } else {
    put_value(ctx, k, key, EntryType::kString, {}, client);
  }
  finish_journal(ctx);  // the records so far have the state before
  std::ranges::copy(part, ctx.keys(k.db).resize(k.f, size) + at);
  k->token = 0;
  set_held_since(*k, ctx.now.mono);
  journal_string_part(ctx, k.db, k.f, before, at, part.size());
  record_part_change(ctx, k, client);
  notify_new_hold(ctx, k);
}

void set_key_deadline(Context& ctx, KeyRef k, TimeMs deadline, ConnId client) {
  if (type_of(*k) == EntryType::kLock) {
    const DurationMs ttl = deadline == kNever ? DurationMs{0} : deadline - ctx.now.mono;
    LockBody* body = lock_body_of(*k);
    body->for_each([&](const Holder& h) { body->set_deadline(&h, deadline, ttl, ctx.now.mono); });
  }
  place_value_deadline(ctx, k, deadline);
  record_hold_change(ctx, k, client);
}

TimeMs key_deadline(const Entry& e) {
  return type_of(e) == EntryType::kLock ? lock_body_of(e)->last_deadline() : value_deadline_of(e);
}

void flush_db(Context& ctx, DbIndex db) {
  Keyspace& keys = ctx.keys(db);
  ctx.s.watches.break_db(ctx.s.conns, db,
                         [&](const std::string& key) { return bool{find_live(ctx, db, keys.key(key))}; });
  // Only keys with a queue, an attachment or a lock body have clients to notify: these are removed one by
  // one.
  std::vector<std::string> affected;
  ctx.s.queues.for_each([&](const WaitQueue& q) {
    if (q.db == db) affected.push_back(q.key_bytes);
  });
  for (const auto& [key, attachment] : ctx.s.attachments) {
    if (key >> 32U == db) affected.emplace_back(key_of(keys.entry(static_cast<Handle>(key))));
  }
  for (const Handle h : keys.locks()) affected.emplace_back(key_of(keys.entry(h)));
  std::sort(affected.begin(), affected.end());
  for (const std::string& bytes : affected) {
    Keyspace::Found f = find_live(ctx, db, keys.key(bytes));
    if (f) remove_key(ctx, {db, f}, End::kDeleted);
  }
  ctx.s.stats.locks.ends[End::kDeleted] += keys.strings();
  journal_flush(ctx, db);
  if (keys.is_bare()) return;
  ctx.s.flushed.push_back(std::move(ctx.s.dbs[db]));
  // Flushed keyspaces must not be added faster than they are freed.
  while (ctx.s.flushed.size() > kDatabases && free_some(ctx.s)) {
  }
  ctx.s.dbs[db] = std::make_unique<Keyspace>(ctx.s.config.hash_seed, ctx.s.pages, ctx.s.removed);
  // The new keyspace gets the placeholders of the queues.
  ctx.s.queues.for_each([&](const WaitQueue& q) {
    if (q.db != db) return;
    ctx.s.dbs[db]->find_or_insert(q.key(), EntryType::kNone, {}, ctx.now.mono).first->has_queue = 1;
  });
}

}  // namespace holdfast
