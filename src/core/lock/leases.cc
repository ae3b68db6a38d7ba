// Grants, confirms, renews and ends leases.
#include "core/lock/leases.h"

#include <algorithm>
#include <memory>

#include "core/base/config.h"
#include "core/base/timers.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/lease_table.h"
#include "core/state/tokens.h"

namespace holdfast {

namespace {

Keyspace::Found find_own(Context& ctx, const LiveLease& lease, const std::string& key) {
  const Keyspace::Found f = find_live(ctx, lease.db, ctx.keys(lease.db).key(key));
  const Attachment* a =
      f && type_of(*f) == EntryType::kString ? attachment_of(ctx.s.attachments, lease.db, f) : nullptr;
  return a != nullptr && a->lease == lease.serial ? f : Keyspace::Found{};
}

void remove_own_keys(Context& ctx, const LiveLease& lease, End why) {
  for (const std::string& key : lease.keys) {
    if (Keyspace::Found f = find_own(ctx, lease, key)) remove_key(ctx, {lease.db, f}, why);
  }
}

void end_lease(Context& ctx, LiveLease* lease, LeaseState state) {
  ctx.s.timers.cancel(lease);
  journal_lease_end(ctx, lease->id, state, lease->token);
  ctx.s.leases.end(lease, state);
}

// Returns whether the lease still has all its keys; if not, ends it as expired.
bool is_whole(Context& ctx, LiveLease* lease) {
  const bool whole =
      std::ranges::all_of(lease->keys, [&](const auto& key) { return bool{find_own(ctx, *lease, key)}; });
  if (whole) return true;
  remove_own_keys(ctx, *lease, End::kExpired);
  end_lease(ctx, lease, LeaseState::kExpired);
  return false;
}

// Returns one token for all keys, larger than every earlier token of them. Returns token 0 if other keys
// would get too far ahead of the clock with it (the limit of the token lead).
Token token_for(Context& ctx, const Keyspace& keys, std::span<const LeaseItem> documents) {
  Tokens& tokens = ctx.s.tokens;
  const uint64_t limit = near_token(ctx.s.config, ctx.now);
  uint64_t last = 0;
  for (const LeaseItem& d : documents) last = std::max(last, tokens.last(keys.key(d.key)));
  const Token token{last + 1};
  const size_t room = Tokens::kMaxAhead - tokens.ahead_keys();
  const bool near = tokens.is_near(token.value, limit) || documents.size() == 1;
  if (!near && (documents.size() > room || !std::ranges::all_of(documents, [&](const LeaseItem& d) {
                  return tokens.fits(keys.key(d.key), token.value, limit);
                })))
    return {};
  for (const LeaseItem& d : documents) tokens.raise(keys.key(d.key), token, limit);
  return token;
}

}  // namespace

LeaseGrant grant_lease(Context& ctx, Conn& c, std::string_view id, DurationMs ttl,
                       std::span<const LeaseItem> documents) {
  LeaseGrant result;
  Keyspace& keys = ctx.keys(c.db);
  for (const LeaseItem& d : documents) {
    if (!is_free(ctx, c.db, find_any(ctx, c.db, keys.key(d.key)))) result.colliding.push_back(d.key);
  }
  if (!result.colliding.empty()) return result;
  result.token = token_for(ctx, keys, documents);
  if (result.token.value == 0) return result;
  auto made = std::make_unique<LiveLease>();
  made->id = id;
  LiveLease* lease = ctx.s.leases.add(std::move(made));
  lease->db = c.db;
  lease->token = result.token;
  lease->ttl = ttl;
  Attachment own;
  own.lease = lease->serial;
  for (const LeaseItem& d : documents) {
    const Key key = keys.key(d.key);
    Keyspace::Found f = find_any(ctx, c.db, key);
    put_string(ctx, {c.db, f}, key, d.value, c.id, result.token);
    attach(ctx, {c.db, f}, own);
    set_key_deadline(ctx, {c.db, f}, ctx.now.mono + ttl, c.id);
    lease->keys.emplace_back(d.key);
  }
  ctx.s.timers.set(lease, ctx.now.mono + ttl);
  journal_lease(ctx, *lease);
  return result;
}

bool confirm_lease(Context& ctx, LiveLease* lease, ConnId client) {
  if (!is_whole(ctx, lease)) return false;
  for (const std::string& key : lease->keys) {
    Keyspace::Found f = find_own(ctx, *lease, key);
    Attachment a = take_attachment(ctx, {lease->db, f});
    a.lease = 0;
    if (a.any()) attach(ctx, {lease->db, f}, std::move(a));
    set_key_deadline(ctx, {lease->db, f}, kNever, client);  // last: its record has the attachment
  }
  end_lease(ctx, lease, LeaseState::kConfirmed);
  return true;
}

bool renew_lease(Context& ctx, LiveLease* lease, DurationMs ttl, ConnId client) {
  if (!is_whole(ctx, lease)) return false;
  lease->ttl = ttl;
  for (const std::string& key : lease->keys) {
    Keyspace::Found f = find_own(ctx, *lease, key);
    set_key_deadline(ctx, {lease->db, f}, ctx.now.mono + ttl, client);
  }
  ctx.s.timers.set(lease, ctx.now.mono + ttl);
  journal_lease_deadline(ctx, *lease);
  return true;
}

void cancel_lease(Context& ctx, LiveLease* lease) {
  remove_own_keys(ctx, *lease, End::kDeleted);
  end_lease(ctx, lease, LeaseState::kCancelled);
}

void expire_lease(Context& ctx, LiveLease* lease) {
  remove_own_keys(ctx, *lease, End::kExpired);
  end_lease(ctx, lease, LeaseState::kExpired);
}

}  // namespace holdfast
