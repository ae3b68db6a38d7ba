// LOCK with TICKET, and RENEW with TOKEN: the forms that wait for a lock on several servers needs.
#pragma once

#include "core/handlers/lock_options.h"
#include "core/lock/acquire.h"
#include "core/state/request.h"

namespace holdfast {

inline constexpr std::string_view kDeadlockText =
    "DEADLOCK deadlock detected: the owner would wait for itself; release its locks and retry";

// LOCK key owner ttl TICKET time ...
void lock_by_ticket(Request& r, const LockRequest& request, const LockWords& o);
// RENEW key owner ttl TOKEN token
void renew_with_token(Request& r);

}  // namespace holdfast
