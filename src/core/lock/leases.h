// Leases: documents put under several keys at once, for a while; then made permanent, or taken back. A key
// is the lease's own as long as it holds the string that the lease put there, which its attachment tells.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state.h"

namespace holdfast {

struct LeaseItem {
  std::string_view key;
  std::string_view value;
};

struct LeaseGrant {
  Token token;                              // 0: not granted
  std::vector<std::string_view> colliding;  // keys that are not free
};

// All keys are free: all are written. Else nothing is, nor where one has tokens so far ahead of the clock
// that the others cannot follow it: then none collides. The id must not be a live lease's, the keys must
// differ.
LeaseGrant grant_lease(Context& ctx, Conn& c, std::string_view id, DurationMs ttl,
                       std::span<const LeaseItem> documents);

// `client` is who asks. False where a key is gone or was overwritten; the lease has then ended as expired
// and the keys that were left to it are removed.
bool confirm_lease(Context& ctx, LiveLease* lease, ConnId client);
bool renew_lease(Context& ctx, LiveLease* lease, DurationMs ttl, ConnId client);
void cancel_lease(Context& ctx, LiveLease* lease);

// Its time is over: its keys go, also those whose expiry somebody changed.
void expire_lease(Context& ctx, LiveLease* lease);

}  // namespace holdfast
