// Admission: whether a request for a lock is granted, waits or is refused.
#pragma once

#include <optional>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/state/state.h"

namespace holdfast {

struct LockRequest {
  Key key;
  std::string_view owner;
  DurationMs ttl;  // 0: until released
  Capacity capacity = kExclusive;
  std::optional<DurationMs> wait;  // nullopt: do not wait; 0: for ever
  DurationMs delay;
  uint64_t hint = 0;
  bool session = false;
  bool async = false;
};

enum class Admission : uint8_t {
  kGranted,
  kBusy,          // not admitted, and not to wait
  kWaiting,       // queued; the answer comes later
  kDeadlock,      // waiting would close a cycle
  kTooMany,       // the limit of waiters in all
  kTooManyOnKey,  // the limit of waiters of one key
  kWrongType,     // the key holds neither a string nor a lock
};
struct Acquisition {
  Admission outcome = Admission::kBusy;
  Token token;  // of a grant
};

Acquisition acquire(Context& ctx, Conn& c, const LockRequest& request);
// Whether nothing but the present holders keeps newcomers out: no delay runs and nobody waits.
bool open_to_newcomers(Context& ctx, DbIndex db, const Entry& e);

// Grants a waiting request if the holders admit it. The key must have an entry, as one with a queue has.
std::optional<Token> try_admit(Context& ctx, DbIndex db, ConnId client, const LockRequest& request);

}  // namespace holdfast
