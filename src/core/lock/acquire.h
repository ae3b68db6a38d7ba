// Admission: decides whether a request for a lock is granted, waits or is rejected.
#pragma once

#include <optional>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/state/context.h"
#include "core/state/wait_queue.h"

namespace holdfast {

struct Conn;

struct LockRequest : LockTerms {
  Key key;
  std::string_view owner;
  std::optional<DurationMs> wait;  // nullopt: do not wait; 0: wait without a timeout
  bool queued = false;             // it has waited
  DurationMs waited;
  std::optional<std::string_view> note;  // nullopt: a hold that exists keeps its note; empty: no note

  bool wants_attachment() const { return session || async || delay.count > 0 || note; }
};

enum class Admission : uint8_t {
  kGranted,
  kBusy,          // not admitted, and the request does not wait
  kWaiting,       // queued; the reply follows later
  kDeadlock,      // waiting would close a cycle of waits
  kTooMany,       // the limit of waiters of the server is reached
  kTooManyOnKey,  // the limit of waiters of one key is reached
  kWrongType,     // the key holds neither a string nor a lock
};
struct Acquisition {
  Admission outcome = Admission::kBusy;
  Token token;  // only of a grant
};

Acquisition acquire(Context& ctx, Conn& c, const LockRequest& request);
// Whether only the present holders can keep a new request out: no lock-delay runs and the key has no
// waiter.
bool admits_new_requests(Context& ctx, DbIndex db, const Entry& e);
// Whether a new request may create the key: it has no value, no holder, no waiter and no lock-delay.
bool is_free(Context& ctx, DbIndex db, const Keyspace::Found& f);

// Grants a waiting request if the holders admit it. Returns its token, or nullopt. The key must have an
// entry (a key with a queue always has one).
std::optional<Token> try_admit(Context& ctx, DbIndex db, ConnId client, const LockRequest& request);

}  // namespace holdfast
