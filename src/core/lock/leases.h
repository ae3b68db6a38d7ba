// Leases: documents written to several keys at once, for a limited time; later confirmed (made permanent)
// or cancelled. A key belongs to the lease as long as it holds the string that the lease wrote. The
// attachment of the key tells this.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/context.h"
#include "core/state/lease_table.h"

namespace holdfast {

struct Conn;

struct LeaseItem {
  std::string_view key;
  std::string_view value;
};

struct LeaseGrant {
  Token token;                              // 0: not granted
  std::vector<std::string_view> colliding;  // keys that are not free
};

// Writes all keys if all are free; else writes nothing and returns the colliding keys. Also writes nothing
// if the tokens of one key are too far ahead of the clock for the other keys; then `colliding` is empty.
// The id must not be that of a live lease, and the keys must differ.
LeaseGrant grant_lease(Context& ctx, Conn& c, std::string_view id, DurationMs ttl,
                       std::span<const LeaseItem> documents);

// `client` is the connection of the request. Return false if a key was removed or overwritten; the lease
// has then ended as expired, and its remaining keys are removed.
bool confirm_lease(Context& ctx, LiveLease* lease, ConnId client);
bool renew_lease(Context& ctx, LiveLease* lease, DurationMs ttl, ConnId client);
void cancel_lease(Context& ctx, LiveLease* lease);

// Ends a lease whose TTL has passed. Removes its keys, also those whose expiry a command changed.
void expire_lease(Context& ctx, LiveLease* lease);

}  // namespace holdfast
