// The codes of all errors. A program decides by them. Texts are for people, and may change.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

// The outcome of a request to acquire, renew or release a lock or a lease. The numbers never change; a
// later version may add some, so a `switch` needs a default.
enum class [[nodiscard]] Outcome : uint8_t{
    kOk = 0,
    kBusy = 1,      // other clients hold the lock or wait for it, and the call did not wait; or keys of a
                    // lease are not free
    kTimeout = 2,   // the wait ended without a grant
    kExpired = 3,   // the TTL is over, or LOCKS BREAK ended the hold: another client may hold the lock
    kNotOwner = 4,  // another owner holds the lock
    kUnreachable = 5,      // too few servers answered to decide the request
    kDeadlock = 6,         // the wait could never end: this owner would wait for itself
    kRefused = 7,          // a server rejected the request; the text has its reason
    kCancelled = 8,        // the caller cancelled the request, or the client was destroyed
    kLeaseConfirmed = 9,   // the lease was confirmed before
    kLeaseCancelled = 10,  // the lease was cancelled before
};

// Returns the outcome in words, as in "busy" or "not owner".
std::string_view name_of(Outcome outcome);

// The code of an error that a server replied. The numbers never change; a later version may add some.
enum class ServerError : uint8_t {
  kNone = 0,   // no error
  kOther = 1,  // an error with a code that is not in this list
  // The server cannot do what the request asks for:
  kSyntax = 2,       // an option that the server does not know
  kNoCommand = 3,    // a command that the server does not know
  kWrongType = 4,    // WRONGTYPE: the key has a value that is not a lock
  kNoReplicas = 5,   // NOREPLICAS: too few replicas of a Redis acknowledged the grant
  kWrongServer = 6,  // MOVED: the key belongs to another node of a cluster
  kGeneral = 7,      // ERR: the request is wrong, or not possible there; the text has the reason
  // The login:
  kNoLogin = 10,     // NOAUTH: the server requires a password
  kWrongLogin = 11,  // WRONGPASS, or a login to a server that has none
  kNoRight = 12,     // NOPERM: the ACL user lacks a right
  // The state of the server; a later retry can succeed:
  kLoading = 20,     // LOADING
  kRecovering = 21,  // RECOVERING: locks held before a restart may still be in use
  kBusyScript = 22,  // BUSY: a script runs
  kFull = 23,        // FULL, or too many waiters
  kAhead = 24,       // AHEAD: a token or a ticket is too far ahead of the server's clock
  kNoDisk = 25,      // MISCONF: the server cannot write, so it grants no locks
  // The state of the wait or of the lease:
  kDeadlock = 30,   // DEADLOCK
  kUnblocked = 31,  // UNBLOCKED: CLIENT UNBLOCK ended the wait
  kOver = 32,       // OVER: the attempt of this owner has ended
  kLeaseExpired = 33,
  kLeaseConfirmed = 34,
  kLeaseCancelled = 35,
  kNoLease = 36,  // NOLEASE: the server does not know the lease
};

// Returns the code in words, as in "no login".
std::string_view name_of(ServerError error);

}  // namespace holdfast
