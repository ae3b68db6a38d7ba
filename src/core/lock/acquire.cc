// Admission: the one rule for mutexes, semaphores, readers and writers. A request joins a key when holders
// + 1 <= min(capacity of the request and of every holder), and no waiter is before it.

#include "core/lock/acquire.h"

#include "core/base/config.h"
#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/keys.h"
#include "core/lock/record_events.h"
#include "core/lock/sessions.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/empty_places.h"
#include "core/state/key_ref.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"
#include "core/state/wait_queue.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <tuple>
#include <utility>

namespace holdfast {

namespace {

TimeMs deadline_of(const Context& ctx, const LockRequest& r) {
  return r.ttl.count == 0 ? kNever : ctx.now.mono + r.ttl;
}

Attachment attachment_of(const Context& ctx, ConnId client, const LockRequest& r) {
  const Conn* c = r.session ? ctx.s.conns.find(client) : nullptr;
  Attachment a{.conn = client,
               .session = r.session,
               .session_number = c == nullptr ? 0 : c->session,
               .async = r.async,
               .delay = r.delay};
  if (r.note) a.note = *r.note;
  return a;
}

// An ASYNC holder gets its push about a loss in time: the timer of the key's queue ends the hold.
void watch_loss(Context& ctx, KeyRef k, const LockRequest& r) {
  if (r.async) queue_of(ctx, k, r.key);
}

// Returns the attachment for an exclusive hold, and removes that which the hold had.
Attachment replace_attachment(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  Attachment attachment = attachment_of(ctx, client, r);
  if (!k->attached) return attachment;
  Attachment old = take_attachment(ctx, k);
  leave_session(ctx, k.db, r.key.bytes, r.owner, old);
  attachment.lease = old.lease;
  if (!r.note) attachment.note = std::move(old.note);
  return attachment;
}

// Sets the TTL and attributes of an exclusive hold from the request that acquired or repeated it.
void set_exclusive_attributes(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  const TimeMs deadline = deadline_of(ctx, r);
  if (!k->attached && !r.wants_attachment()) [[likely]] {
    ctx.keys(k.db).set_deadline(k.f, deadline, r.ttl, ctx.now.mono);
  } else {
    Attachment attachment = replace_attachment(ctx, k, client, r);
    ctx.keys(k.db).set_deadline(k.f, deadline, r.ttl, ctx.now.mono);
    if (attachment.any()) {
      join_session(ctx, k.db, r.key.bytes, r.owner, attachment);
      attach(ctx, k, std::move(attachment));
    }
  }
  set_client(*k, client);
  watch_loss(ctx, k, r);
  journal_key(ctx, k.db, r.key.bytes);
  key_changed(ctx, k.db, r.key.bytes);
  touch(ctx, k.db, *k);
}

void set_holder_attributes(Context& ctx, KeyRef k, const Holder* h, ConnId client, const LockRequest& r) {
  Attachment attachment = attachment_of(ctx, client, r);
  if (!r.note) attachment.note = h->attachment.note;
  LockBody* body = lock_body_of(*k);
  leave_session(ctx, k.db, r.key.bytes, r.owner, h->attachment);
  body->set_deadline(h, deadline_of(ctx, r), r.ttl, ctx.now.mono);
  body->set_attachment(h, std::move(attachment), client);
  join_session(ctx, k.db, r.key.bytes, r.owner, h->attachment);
  watch_loss(ctx, k, r);
  if (body->size() == 1) {
    journal_key(ctx, k.db, r.key.bytes);  // the key may not have been a lock before
  } else {
    journal_holder(ctx, k.db, r.key.bytes, *h);
  }
  follow_holders(ctx, k);
}

void record_new_holder(Context& ctx, KeyRef k, const LockRequest& r) {
  if (!k->has_queue) return;
  WaitQueue* q = ctx.s.queues.find(k.db, r.key);
  q->new_holders.emplace_back(r.owner);
  ctx.s.queues.mark_ready(q);
}

// Makes the entry a lock.
void place_lock(Context& ctx, KeyRef k, std::unique_ptr<LockBody> body) {
  place_body(std::move(body),
             [&](std::string_view bytes) { ctx.keys(k.db).rewrite(k.f, EntryType::kLock, bytes); });
}

// Makes an entry without holders an exclusive hold of the request's owner.
Token grant_exclusive(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  if (type_of(*k) != EntryType::kString) ctx.keys(k.db).rewrite(k.f, EntryType::kString, r.owner);
  const Token token = ctx.s.tokens.next(r.key, r.hint, near_token(ctx.s.config, ctx.now));
  k->token = token.value & kMaxToken;
  set_held_since(*k, ctx.now.mono);
  record_grant(ctx, k, token, client, r);
  set_exclusive_attributes(ctx, k, client, r);
  record_new_holder(ctx, k, r);
  lock_event(ctx, r.key.bytes, "granted", r.owner, token);
  return token;
}

// Adds the request's owner to the holders of a lock. It must not be a holder yet.
Token join_lock(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  Holder h;
  h.owner = r.owner;
  h.token = ctx.s.tokens.next(r.key, r.hint, near_token(ctx.s.config, ctx.now));
  h.capacity = r.capacity;
  h.deadline = deadline_of(ctx, r);
  h.held_since = ctx.now.mono;
  const Token token = h.token;
  record_grant(ctx, k, token, client, r);
  set_holder_attributes(ctx, k, lock_body_of(*k)->add(std::move(h)), client, r);
  record_new_holder(ctx, k, r);
  lock_event(ctx, r.key.bytes, "granted", r.owner, token);
  return token;
}

Token grant_new(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  if (r.capacity == kExclusive) return grant_exclusive(ctx, k, client, r);
  if (type_of(*k) != EntryType::kLock) place_lock(ctx, k, std::make_unique<LockBody>(ctx.s.holders));
  return join_lock(ctx, k, client, r);
}

// Converts an exclusive hold whose owner requests a weaker mode to a hold of a lock, with the same token
// and start time.
Token downgrade_exclusive(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  Holder h;
  h.owner = r.owner;
  h.token = exclusive_token(ctx, k);
  h.capacity = r.capacity;
  h.held_since = held_since(*k);
  h.attachment = take_attachment(ctx, k);
  const Token token = h.token;
  auto body = std::make_unique<LockBody>(ctx.s.holders);
  const Holder* added = body->add(std::move(h));
  place_lock(ctx, k, std::move(body));
  set_holder_attributes(ctx, k, added, client, r);
  record_new_holder(ctx, k, r);
  return token;
}

// Replaces a hold by one with a smaller capacity and a new token. An exclusive hold makes the lock, whose
// only holder it was, a plain string. Without a new note the hold keeps its own.
Token upgrade(Context& ctx, KeyRef k, const Holder* h, ConnId client, LockRequest r) {
  const std::string note = h->attachment.note;
  if (!r.note) r.note = note;
  leave_session(ctx, k.db, r.key.bytes, r.owner, h->attachment);
  if (r.capacity == kExclusive) {
    ctx.keys(k.db).rewrite(k.f, EntryType::kString, r.owner);
    return grant_exclusive(ctx, k, client, r);
  }
  lock_body_of(*k)->remove(h);
  return join_lock(ctx, k, client, r);
}

// Serves a request of a holder, in the same mode or another. Returns nullopt if the other holders do not
// admit the new mode.
std::optional<Token> convert(Context& ctx, KeyRef k, const Holder* h, ConnId client, const LockRequest& r) {
  LockBody* body = lock_body_of(*k);
  if (r.capacity == h->capacity) {
    set_holder_attributes(ctx, k, h, client, r);
    return h->token;
  }
  if (body->size() > std::min(r.capacity, body->tightest(h)).count) return std::nullopt;
  if (r.capacity < h->capacity) return upgrade(ctx, k, h, client, r);
  body->set_capacity(h, r.capacity);
  set_holder_attributes(ctx, k, h, client, r);
  record_new_holder(ctx, k, r);
  return h->token;
}

// Grants a request if the present holders admit it, without regard to waiters. Returns nullopt if not.
std::optional<Token> admit(Context& ctx, KeyRef k, ConnId client, const LockRequest& r) {
  switch (type_of(*k)) {
    case EntryType::kNone:
      return grant_new(ctx, k, client, r);
    case EntryType::kString:
      if (value_of(*k) != r.owner) return std::nullopt;
      if (r.capacity != kExclusive) return downgrade_exclusive(ctx, k, client, r);
      set_exclusive_attributes(ctx, k, client, r);
      return exclusive_token(ctx, k);
    case EntryType::kLock: {
      const LockBody* body = lock_body_of(*k);
      if (const Holder* h = body->find(r.owner)) return convert(ctx, k, h, client, r);
      if (body->size() + 1 > std::min(r.capacity, body->tightest()).count) return std::nullopt;
      return join_lock(ctx, k, client, r);
    }
    case EntryType::kHash:
    case EntryType::kBigHash:
    case EntryType::kList:
    case EntryType::kSet:
    case EntryType::kZset:
      break;  // waiters keep waiting until the value is removed
  }
  return std::nullopt;
}

Acquisition granted(Token token) { return {Admission::kGranted, token}; }

bool delayed(Context& ctx, DbIndex db, const Entry& e) {
  return e.has_queue && ctx.s.queues.find(db, ctx.keys(db).key(key_of(e)))->delayed(ctx.due);
}

// The usual case: a key without holder and waiter. Needs one look-up. Returns nullopt if the key has an
// entry.
std::optional<Acquisition> acquire_fresh(Context& ctx, Conn& c, const LockRequest& r, Keyspace::Found& f) {
  const EntryType type = r.capacity == kExclusive ? EntryType::kString : EntryType::kNone;
  bool made = false;
  std::tie(f, made) =
      ctx.keys(c.db).find_or_insert(r.key, type, type == EntryType::kString ? r.owner : "", ctx.now.mono);
  if (made) return granted(grant_new(ctx, {c.db, f}, c.id, r));
  if (!is_due(*f, ctx.due)) return std::nullopt;
  expire_key(ctx, {c.db, f});
  return f ? std::nullopt : acquire_fresh(ctx, c, r, f);
}

}  // namespace

bool admits_new_requests(Context& ctx, DbIndex db, const Entry& e) {
  if (!e.has_queue) return true;
  WaitQueue* q = ctx.s.queues.find(db, ctx.keys(db).key(key_of(e)));
  return !has_line(ctx, q) && !q->delayed(ctx.due);
}

bool is_free(Context& ctx, DbIndex db, const Keyspace::Found& f) {
  return !f || (type_of(*f) == EntryType::kNone && admits_new_requests(ctx, db, *f));
}

std::optional<Token> try_admit(Context& ctx, DbIndex db, ConnId client, const LockRequest& r) {
  Keyspace::Found f = find_any(ctx, db, r.key);
  return admit(ctx, {db, f}, client, r);
}

static Acquisition acquire_or_wait(Context& ctx, Conn& c, const LockRequest& r) {
  Keyspace::Found f;
  if (const auto fresh = acquire_fresh(ctx, c, r, f)) return *fresh;
  if (is_collection(*f)) return {Admission::kWrongType, {}};
  // A request of a holder passes the queue, as the waiters wait for that holder anyhow. An upgrade is a
  // grant, so a lock-delay defers it.
  const auto held = held_capacity(*f, r.owner);
  const bool upgrade = held && r.capacity < *held;
  const bool may_try = held ? !upgrade || !delayed(ctx, c.db, *f) : admits_new_requests(ctx, c.db, *f);
  if (may_try) {
    if (const auto token = admit(ctx, {c.db, f}, c.id, r)) return granted(*token);
  }
  if (!r.wait) {
    ++ctx.s.stats.locks.refusals[Refusal::kHeld];
    return {Admission::kBusy, {}};
  }
  return wait_for(ctx, c, r, f, upgrade);
}

Acquisition acquire(Context& ctx, Conn& c, const LockRequest& r) {
  const Acquisition a = acquire_or_wait(ctx, c, r);
  if (ctx.s.places.size() > 0 && a.outcome == Admission::kGranted) [[unlikely]]
    ctx.s.places.forget({c.db, r.key.bytes, r.owner});
  return a;
}

}  // namespace holdfast
