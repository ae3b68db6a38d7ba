// The life of a hold: look-up, renewal, end. Every end of a hold passes through this file, so that its
// listeners, its lock-delay and the waiters of its key are always served.
#include "core/lock/holds.h"

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/keys.h"
#include "core/lock/record_events.h"
#include "core/lock/sessions.h"
#include "core/lock/value_expiry.h"
#include "core/lock/votes.h"
#include "core/lock/waiting.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/output.h"
#include "core/state/pubsub.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"
#include "core/state/wait_queue.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <vector>

namespace holdfast {

namespace {

bool delays(End why) { return why == End::kExpired || why == End::kDisconnected || why == End::kBroken; }

void notify_loss(Context& ctx, const Attachment& a, std::string_view key, std::string_view owner) {
  Conn* c = a.async ? ctx.s.conns.find(a.conn) : nullptr;
  if (c == nullptr || c->protocol < 3) return;
  Reply push = push_to(ctx, *c);
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

// The effects of the end of a hold beside the key: push, session, lock-delay.
void finish_hold(Context& ctx, KeyRef k, const Attachment& a, std::string_view owner, End why, TimeMs at) {
  if (why != End::kReleased) notify_loss(ctx, a, key_of(*k), owner);
  leave_session(ctx, k.db, key_of(*k), owner, a);
  lock_event(ctx, key_of(*k), end_event(why), owner);
  if (a.delay.count == 0 || !delays(why)) return;
  WaitQueue* q = queue_of(ctx, k, ctx.keys(k.db).key(key_of(*k)));
  q->delay_until = std::max(q->delay_until, at + a.delay);
  journal_delay(ctx, k.db, q->key_bytes, q->delay_until);
  ctx.s.queues.mark_ready(q);
}

// Removes an entry whose holds have all ended. A key with a queue keeps a placeholder entry.
void drop_entry(Context& ctx, KeyRef k) {
  Keyspace& keys = ctx.keys(k.db);
  journal_key(ctx, k.db, key_of(*k));
  key_changed(ctx, k.db, key_of(*k));
  if (!k->has_queue) {
    keys.erase(k.f);
    return;
  }
  keys.set_deadline(k.f, kNever, {0}, ctx.now.mono);
  keys.rewrite(k.f, EntryType::kNone, {});
  k->token = 0;
  touch(ctx, k.db, *k);
}

}  // namespace

void end_exclusive(Context& ctx, KeyRef k, End why, TimeMs at) {
  if (!is_hold(*k)) return;
  record_exclusive_end(ctx, k, why, at);
  if (k->has_queue) [[unlikely]]
    end_vote(ctx, k, value_of(*k), why, at);
  if (!k->attached && ctx.s.pubsub.empty()) [[likely]]
    return;  // no listener, no attachment
  finish_hold(ctx, k, take_attachment(ctx, k), value_of(*k), why, at);
}

void place_deadline(Context& ctx, KeyRef k, TimeMs deadline, DurationMs ttl, TimeMs renewed) {
  if (!k->attached) return ctx.keys(k.db).set_deadline(k.f, deadline, ttl, renewed);
  Attachment a = take_attachment(ctx, k);
  ctx.keys(k.db).set_deadline(k.f, deadline, ttl, renewed);
  if (a.any()) attach(ctx, k, std::move(a));
}

Attachment take_attachment(Context& ctx, KeyRef k) {
  if (!k->attached) return {};
  k->attached = 0;
  const auto it = ctx.s.attachments.find(attachment_key(k.db, k.f.handle()));
  Attachment a = std::move(it->second);
  ctx.s.attachments.note_bytes -= a.note.size();
  ctx.s.attachments.erase(it);
  return a;
}

void attach(Context& ctx, KeyRef k, Attachment a) {
  k->attached = 1;
  ctx.s.attachments.note_bytes += a.note.size();
  ctx.s.attachments[attachment_key(k.db, k.f.handle())] = std::move(a);
}

void follow_holders(Context& ctx, KeyRef k) {
  const Holder* first = lock_body_of(*k)->first_to_expire();
  ctx.keys(k.db).set_deadline(k.f, first->deadline, first->ttl, first->renewed);
  key_changed(ctx, k.db, key_of(*k));
  touch(ctx, k.db, *k);
}

void touch(Context& ctx, DbIndex db, const Entry& e) {
  if (e.has_queue) ctx.s.queues.mark_ready(ctx.s.queues.find(db, ctx.keys(db).key(key_of(e))));
}

void remove_key(Context& ctx, KeyRef k, End why, TimeMs at) {
  if (type_of(*k) == EntryType::kLock) {
    LockBody* body = lock_body_of(*k);
    while (k && body->size() > 0) {
      const bool last = body->size() == 1;
      end_holder(ctx, k, body->first_to_expire(), why, at);
      if (last) return;
    }
    return;
  }
  end_exclusive(ctx, k, why, at);
  drop_entry(ctx, k);
}

size_t expire_key(Context& ctx, KeyRef k, size_t most_fields) {
  // While the server loads, a later record of the journal may be the end of this hold. Few commands run
  // then; WATCH is one of them.
  if (ctx.s.availability.loading) [[unlikely]]
    return 0;
  if (!is_due(value_deadline_of(*k), ctx.due)) return expire_fields(ctx, k, most_fields);
  ++ctx.s.stats.expired_keys;
  if (type_of(*k) != EntryType::kLock) {
    end_exclusive(ctx, k, End::kExpired, deadline_of(*k));
    if (ctx.s.config.notify_flags == 0) [[likely]]
      return drop_entry(ctx, k), 0;
    const std::string key(key_of(*k));
    drop_entry(ctx, k);
    return notify(ctx, kNotifyExpired, "expired", k.db, key), 0;
  }
  LockBody* body = lock_body_of(*k);
  while (true) {
    const Holder* h = body->first_to_expire();
    if (!is_due(h->deadline, ctx.due)) return 0;
    if (body->size() > 1) {
      end_holder(ctx, k, h, End::kExpired, h->deadline);
      continue;
    }
    const std::string key(key_of(*k));
    end_holder(ctx, k, h, End::kExpired, h->deadline);
    return notify(ctx, kNotifyExpired, "expired", k.db, key), 0;
  }
}

void end_holder(Context& ctx, KeyRef k, const Holder* holder, End why, TimeMs at) {
  record_holder_end(ctx, k, *holder, why, at);
  if (k->has_queue) end_vote(ctx, k, holder->owner, why, at);
  finish_hold(ctx, k, holder->attachment, holder->owner, why, at);
  LockBody* body = lock_body_of(*k);
  if (body->size() > 1) journal_erased_holder(ctx, k.db, key_of(*k), holder->owner);
  body->remove(holder);
  if (body->size() == 0) {
    drop_entry(ctx, k);
    return;
  }
  follow_holders(ctx, k);
}

void renew_hold(Context& ctx, KeyRef k, const Holder* holder, std::optional<DurationMs> given,
                ConnId client) {
  const DurationMs ttl = given.value_or(holder != nullptr ? holder->ttl : ttl_of(*k));
  const TimeMs deadline = ttl.count == 0 ? kNever : ctx.now.mono + ttl;
  if (holder != nullptr) {
    LockBody* body = lock_body_of(*k);
    body->set_deadline(holder, deadline, ttl, ctx.now.mono);
    body->set_client(holder, client);
    journal_holder(ctx, k.db, key_of(*k), *holder);
    follow_holders(ctx, k);
  } else {
    place_deadline(ctx, k, deadline, ttl, ctx.now.mono);
    record_hold_change(ctx, k, client);
  }
}

std::optional<OneHold> hold_of(const Entry& e, std::string_view owner) {
  if (type_of(e) == EntryType::kLock) {
    const Holder* h = lock_body_of(e)->find(owner);
    if (h == nullptr) return std::nullopt;
    return OneHold{h, h->token, h->capacity, h->deadline, h->renewed};
  }
  if (type_of(e) != EntryType::kString || value_of(e) != owner) return std::nullopt;
  return OneHold{nullptr, token_of(e), kExclusive, deadline_of(e), renewed_at(e)};
}

std::optional<Capacity> held_capacity(const Entry& e, std::string_view owner) {
  if (type_of(e) == EntryType::kString && value_of(e) == owner) return kExclusive;
  const Holder* h = type_of(e) == EntryType::kLock ? lock_body_of(e)->find(owner) : nullptr;
  return h == nullptr ? std::nullopt : std::optional(h->capacity);
}

void extend_hold(Context& ctx, KeyRef k, const Holder* holder, DurationMs ttl, ConnId client) {
  const TimeMs present = holder != nullptr ? holder->deadline : deadline_of(*k);
  const TimeMs wanted = ttl.count == 0 ? kNever : ctx.now.mono + ttl;
  if (wanted > present) renew_hold(ctx, k, holder, ttl, client);
}

Token exclusive_token(Context& ctx, KeyRef k) {
  if (k->token == 0) {
    const Key key = ctx.keys(k.db).key(key_of(*k));
    k->token = ctx.s.tokens.next(key, 0, near_token(ctx.s.config, ctx.now)).value & kMaxToken;
    journal_hold(ctx, k.db, k.f);
  }
  return token_of(*k);
}

void raise_token(Context& ctx, KeyRef k, const Holder* holder, Token token) {
  const Key key = ctx.keys(k.db).key(key_of(*k));
  ctx.s.tokens.raise(key, token, near_token(ctx.s.config, ctx.now));
  if (k->has_queue) raise_vote(ctx, k, holder == nullptr ? value_of(*k) : holder->owner, token);
  if (holder == nullptr) {
    k->token = token.value & kMaxToken;
    return journal_hold(ctx, k.db, k.f);
  }
  lock_body_of(*k)->set_token(holder, token);
  journal_holder(ctx, k.db, key.bytes, *holder);
}

Origin origin_of(const EngineState& s, const Entry& e) {
  const uint64_t serial = s.conns.serial_of_bits(e.client_bits);
  // After 2^24 connections the bits repeat. A connection that reuses them is then younger than the hold.
  const bool sure = s.conns.opened() < (uint64_t{1} << 24U);
  const auto may_be = [&](TimeMs opened) { return sure || opened <= renewed_at(e); };
  if (const Conn* c = s.conns.find_serial(serial)) {
    return may_be(c->opened) ? Origin{serial, c->peer, c->name} : Origin{};
  }
  const ClosedConn* closed = s.conns.closed().find(serial);
  return closed != nullptr && may_be(closed->opened) ? Origin{0, closed->addr, closed->name} : Origin{};
}

Origin origin_of(const EngineState& s, uint64_t serial) {
  if (const Conn* c = s.conns.find_serial(serial)) return {serial, c->peer, c->name};
  const ClosedConn* closed = s.conns.closed().find(serial);
  return closed == nullptr ? Origin{} : Origin{0, closed->addr, closed->name};
}

bool has_listener(const EngineState& s, DbIndex db, const Keyspace::Found& f) {
  if (type_of(*f) == EntryType::kLock) return lock_body_of(*f)->listeners() > 0;
  const Attachment* a = attachment_of(s.attachments, db, f);
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
  const Attachment* a = attachment_of(s.attachments, db, f);
  all.emplace_back(value_of(*f), a == nullptr ? Attachment{} : *a);
  return all;
}

}  // namespace holdfast
