// Changes of values.
#include "core/lock/keys.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/state/memory_use.h"

namespace holdfast {

void put_value(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, EntryType type,
               std::string_view bytes, ConnId client) {
  Keyspace& keys = t.keys(db);
  const bool made = !f || type_of(*f) == EntryType::kNone;
  if (!f) {
    f = keys.find_or_insert(key, type, bytes, t.now.mono).first;
  } else {
    if (type_of(*f) == EntryType::kLock) {
      const std::string copy(bytes);  // it may have come from the entry that goes
      remove_key(t, db, f, End::kOverwritten);
      f = keys.find(key);
      return put_value(t, db, key, f, type, copy, client);
    }
    end_exclusive(t, db, f, End::kOverwritten, t.due);
    if (type_of(*f) == EntryType::kNone) keys.set_deadline(f, kNever, {0}, t.now.mono);
    keys.rewrite(f, type, bytes);
    f->token = 0;
    set_held_since(*f, t.now.mono);
  }
  if (made) notify(t, kNotifyNew, "new", db, key.bytes);
  note_value_change(t, db, f, client);
}

void note_value_change(Turn& t, DbIndex db, const Keyspace::Found& f, ConnId client) {
  journal_key(t, db, key_of(*f));
  note_part_change(t, db, f, client);
}

void note_part_change(Turn& t, DbIndex db, const Keyspace::Found& f, ConnId client) {
  set_client(*f, client);
  key_changed(t, db, key_of(*f));
  touch(t, db, *f);
}

// A SET is a grant to those who listen; to all others its token is worth nothing until it is asked for.
static void tell_set(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f) {
  if (t.s.pubsub.empty()) return;
  const Token token = exclusive_token(t, db, key, f);
  lock_event(t, key.bytes, "granted", value_of(*f), token);
}

// The string is another hold than before.
static void tell_new_hold(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f) {
  tell_set(t, db, key, f);
  if (!f->has_queue) return;
  WaitQueue* q = t.s.queues.find(db, key);
  q->new_holders.emplace_back(value_of(*f));
  t.s.queues.mark_ready(q);
}

void put_string(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, std::string_view value,
                ConnId client, Token token) {
  const bool same = f && type_of(*f) == EntryType::kString && value_of(*f) == value;
  if (same) return note_value_change(t, db, f, client);
  put_value(t, db, key, f, EntryType::kString, value, client);
  f->token = token.value & kMaxToken;
  tell_new_hold(t, db, key, f);
}

void put_string_part(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, size_t at,
                     std::string_view part, ConnId client) {
  const std::string_view value = value_of(*f);
  const size_t size = std::max(value.size(), at + part.size());
  if (!Keyspace::can_resize(*f)) {
    std::string changed(value);
    changed.resize(size);
    changed.replace(at, part.size(), part);
    return put_string(t, db, key, f, changed, client);
  }
  if (size == value.size() && value.substr(at, part.size()) == part) {
    return note_value_change(t, db, f, client);
  }
  end_exclusive(t, db, f, End::kOverwritten, t.due);
  std::ranges::copy(part, t.keys(db).resize(f, size) + at);
  f->token = 0;
  set_held_since(*f, t.now.mono);
  note_value_change(t, db, f, client);
  tell_new_hold(t, db, key, f);
}

void set_key_deadline(Turn& t, DbIndex db, Keyspace::Found& f, TimeMs deadline, ConnId client) {
  const DurationMs ttl = deadline == kNever ? DurationMs{0} : deadline - t.now.mono;
  if (type_of(*f) == EntryType::kLock) {
    LockBody* body = lock_body_of(*f);
    body->for_each([&](const Holder& h) { body->set_deadline(&h, deadline, ttl, t.now.mono); });
  }
  place_deadline(t, db, f, deadline, ttl, t.now.mono);
  note_value_change(t, db, f, client);
}

TimeMs key_deadline(const Entry& e) {
  return type_of(e) == EntryType::kLock ? lock_body_of(e)->last_deadline() : deadline_of(e);
}

void flush_db(Turn& t, DbIndex db) {
  Keyspace& keys = t.keys(db);
  t.s.watches.break_db(t.s.conns, db,
                       [&](const std::string& key) { return bool{find_live(t, db, keys.key(key))}; });
  // Only keys with somebody to tell need more than being forgotten.
  std::vector<std::string> concerned;
  t.s.queues.for_each([&](const WaitQueue& q) {
    if (q.db == db) concerned.push_back(q.key_bytes);
  });
  for (const auto& [key, attachment] : t.s.attachments) {
    if (key >> 32U == db) concerned.emplace_back(key_of(keys.entry(static_cast<Handle>(key))));
  }
  for (const Handle h : keys.locks()) concerned.emplace_back(key_of(keys.entry(h)));
  std::sort(concerned.begin(), concerned.end());
  for (const std::string& bytes : concerned) {
    Keyspace::Found f = find_live(t, db, keys.key(bytes));
    if (f) remove_key(t, db, f, End::kDeleted);
  }
  journal_flush(t, db);
  if (keys.is_bare()) return;
  t.s.flushed.push_back(std::move(t.s.dbs[db]));
  // They must not come faster than they go.
  while (t.s.flushed.size() > kDatabases && give_some_back(t.s)) {
  }
  t.s.dbs[db] = std::make_unique<Keyspace>(t.s.config.hash_seed, t.s.pages);
  // Placeholders of the queues move to the new keyspace.
  t.s.queues.for_each([&](const WaitQueue& q) {
    if (q.db != db) return;
    t.s.dbs[db]->find_or_insert(q.key(), EntryType::kNone, {}, t.now.mono).first->has_queue = 1;
  });
}

}  // namespace holdfast
