// The life of a hold: found, renewed, ended. Everything that ends one passes through here, so that its
// listeners, its lock-delay and the waiters of its key are never forgotten.
#include "core/lock/locks.h"

#include "core/events/change_events.h"
#include "core/events/journal.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <vector>

namespace holdfast {

namespace {

bool delays(End why) { return why == End::kExpired || why == End::kDisconnected || why == End::kBroken; }

void tell_loss(Turn& t, const Attachment& a, std::string_view key, std::string_view owner) {
  Conn* c = a.async ? t.s.conns.find(a.conn) : nullptr;
  if (c == nullptr || c->protocol < 3) return;
  Reply push = push_to(t, *c);
  push.push(4);
  push.bulk("lock");
  push.bulk("lost");
  push.bulk(key);
  push.bulk(owner);
}

std::string_view end_event(End why) {
  switch (why) {
    case End::kReleased:
    case End::kDeleted:
      return "released";
    case End::kExpired:
    case End::kDisconnected:
      return "expired";
    case End::kBroken:
    case End::kOverwritten:
      break;
  }
  return "broken";
}

void count_end(Turn& t, End why) {
  if (why == End::kReleased) ++t.s.stats.releases;
  if (why == End::kBroken) ++t.s.stats.broken_holds;
}

// What the end of a hold sets off beside the key: notice, session, lock-delay, counters.
void conclude(Turn& t, DbIndex db, Keyspace::Found& f, const Attachment& a, std::string_view owner, End why,
              TimeMs at) {
  count_end(t, why);
  if (why != End::kReleased) tell_loss(t, a, key_of(*f), owner);
  leave_session(t, db, key_of(*f), owner, a);
  lock_event(t, key_of(*f), end_event(why), owner);
  if (a.delay.count == 0 || !delays(why)) return;
  WaitQueue* q = queue_of(t, db, t.keys(db).key(key_of(*f)), f);
  q->delay_until = std::max(q->delay_until, at + a.delay);
  journal_delay(t, db, q->key_bytes, q->delay_until);
  t.s.queues.mark_ready(q);
}

// Removes an entry whose holds have all ended; where there is a queue, a placeholder keeps its place.
void drop_entry(Turn& t, DbIndex db, Keyspace::Found& f) {
  Keyspace& keys = t.keys(db);
  journal_key(t, db, key_of(*f));
  key_changed(t, db, key_of(*f));
  if (!f->has_queue) {
    keys.erase(f);
    return;
  }
  keys.set_deadline(f, kNever, {0}, t.now.mono);
  keys.rewrite(f, EntryType::kNone, {});
  f->token = 0;
  touch(t, db, *f);
}

void end_exclusive(Turn& t, DbIndex db, Keyspace::Found& f, End why, TimeMs at) {
  if (!is_hold(*f)) return;
  if (!f->attached && t.s.pubsub.empty()) [[likely]]
    return count_end(t, why);  // nobody else is concerned
  conclude(t, db, f, take_attachment(t, db, f), value_of(*f), why, at);
}

// Sets an entry's deadline and carries its attachment along where that moved it.
void place_deadline(Turn& t, DbIndex db, Keyspace::Found& f, TimeMs deadline, DurationMs ttl,
                    TimeMs renewed) {
  const Attachment a = take_attachment(t, db, f);
  t.keys(db).set_deadline(f, deadline, ttl, renewed);
  if (a.any()) attach(t, db, f, a);
}

}  // namespace

Attachment take_attachment(Turn& t, DbIndex db, Keyspace::Found& f) {
  if (!f->attached) return {};
  f->attached = 0;
  const auto it = t.s.attachments.find(attachment_key(db, f.handle()));
  const Attachment a = it->second;
  t.s.attachments.erase(it);
  return a;
}

void attach(Turn& t, DbIndex db, Keyspace::Found& f, const Attachment& a) {
  f->attached = 1;
  t.s.attachments[attachment_key(db, f.handle())] = a;
}

void follow_holders(Turn& t, DbIndex db, Keyspace::Found& f) {
  const Holder* first = lock_body_of(*f)->first_to_expire();
  t.keys(db).set_deadline(f, first->deadline, first->ttl, first->renewed);
  key_changed(t, db, key_of(*f));
  touch(t, db, *f);
}

void touch(Turn& t, DbIndex db, const Entry& e) {
  if (e.has_queue) t.s.queues.mark_ready(t.s.queues.find(db, t.keys(db).key(key_of(e))));
}

void remove_key(Turn& t, DbIndex db, Keyspace::Found& f, End why, TimeMs at) {
  if (type_of(*f) == EntryType::kLock) {
    LockBody* body = lock_body_of(*f);
    while (f && body->size() > 0) {
      const bool last = body->size() == 1;
      end_holder(t, db, f, body->first_to_expire(), why, at);
      if (last) return;
    }
    return;
  }
  end_exclusive(t, db, f, why, at);
  drop_entry(t, db, f);
}

void expire_key(Turn& t, DbIndex db, Keyspace::Found& f) {
  ++t.s.stats.expired_keys;
  if (type_of(*f) != EntryType::kLock) {
    end_exclusive(t, db, f, End::kExpired, deadline_of(*f));
    if (t.s.config.notify_flags == 0) [[likely]]
      return drop_entry(t, db, f);
    const std::string key(key_of(*f));
    drop_entry(t, db, f);
    return notify(t, kNotifyExpired, "expired", db, key);
  }
  LockBody* body = lock_body_of(*f);
  while (true) {
    const Holder* h = body->first_to_expire();
    if (!is_due(h->deadline, t.due)) return;
    if (body->size() > 1) {
      end_holder(t, db, f, h, End::kExpired, h->deadline);
      continue;
    }
    const std::string key(key_of(*f));
    end_holder(t, db, f, h, End::kExpired, h->deadline);
    return notify(t, kNotifyExpired, "expired", db, key);
  }
}

void end_holder(Turn& t, DbIndex db, Keyspace::Found& f, const Holder* holder, End why, TimeMs at) {
  conclude(t, db, f, holder->attachment, holder->owner, why, at);
  LockBody* body = lock_body_of(*f);
  if (body->size() > 1) journal_erased_holder(t, db, key_of(*f), holder->owner);
  body->remove(holder);
  if (body->size() == 0) {
    drop_entry(t, db, f);
    return;
  }
  follow_holders(t, db, f);
}

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

void renew_hold(Turn& t, DbIndex db, Keyspace::Found& f, const Holder* holder,
                std::optional<DurationMs> given, ConnId client) {
  const DurationMs ttl = given.value_or(holder != nullptr ? holder->ttl : ttl_of(*f));
  const TimeMs deadline = ttl.count == 0 ? kNever : t.now.mono + ttl;
  if (holder != nullptr) {
    LockBody* body = lock_body_of(*f);
    body->set_deadline(holder, deadline, ttl, t.now.mono);
    body->set_attachment(holder, holder->attachment, client);
    journal_holder(t, db, key_of(*f), *holder);
    follow_holders(t, db, f);
  } else {
    place_deadline(t, db, f, deadline, ttl, t.now.mono);
    note_value_change(t, db, f, client);
  }
}

Token exclusive_token(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f) {
  if (f->token == 0) {
    f->token = t.s.tokens.next(key, 0, near_token(t.s.config, t.now)).value & kMaxToken;
    journal_key(t, db, key.bytes);
  }
  return token_of(*f);
}

void raise_token(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, const Holder* holder,
                 Token token) {
  t.s.tokens.raise(key, token, near_token(t.s.config, t.now));
  if (holder == nullptr) {
    f->token = token.value & kMaxToken;
    return journal_key(t, db, key.bytes);
  }
  lock_body_of(*f)->set_token(holder, token);
  journal_holder(t, db, key.bytes, *holder);
}

const Conn* client_of(const EngineState& s, const Entry& e) {
  const Conn* c = s.conns.find_bits(e.client_bits);
  // After 2^24 connections the bits come again: then the one that has them now is younger than the hold.
  const bool sure = s.conns.opened() < (uint64_t{1} << 24U);
  return c != nullptr && (sure || c->opened <= renewed_at(e)) ? c : nullptr;
}

const Attachment* attachment_of(const EngineState& s, DbIndex db, const Keyspace::Found& f) {
  if (!f->attached) return nullptr;
  return &s.attachments.find(attachment_key(db, f.handle()))->second;
}

bool has_listener(const EngineState& s, DbIndex db, const Keyspace::Found& f) {
  if (type_of(*f) == EntryType::kLock) return lock_body_of(*f)->listeners() > 0;
  const Attachment* a = attachment_of(s, db, f);
  return a != nullptr && a->async;
}

std::vector<std::pair<std::string_view, Attachment>> attachments_of_key(const EngineState& s, DbIndex db,
                                                                        const Keyspace::Found& f) {
  std::vector<std::pair<std::string_view, Attachment>> all;
  if (!is_hold(*f)) return all;
  if (type_of(*f) == EntryType::kLock) {
    lock_body_of(*f)->for_each([&](const Holder& h) { all.emplace_back(h.owner, h.attachment); });
    return all;
  }
  const Attachment* a = attachment_of(s, db, f);
  all.emplace_back(value_of(*f), a == nullptr ? Attachment{} : *a);
  return all;
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
