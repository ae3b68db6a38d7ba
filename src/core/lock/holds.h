// The life of a hold: its renewal, its end, and the effects of the end. Only the functions of src/core/lock
// make, change or end holds; commands call them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"
#include "core/state/lock_stats.h"

namespace holdfast {

struct Conn;

// Ends all holds of a key and removes it. Its queue, if any, stays and is served before the engine call
// ends. `at` is the time at which the holds ended, which may be in the past.
void remove_key(Context& ctx, KeyRef k, End why, TimeMs at);
inline void remove_key(Context& ctx, KeyRef k, End why) { remove_key(ctx, k, why, ctx.due); }
// How many expired fields one look-up of a hash erases: so many that a hash which is set faster than the
// timing wheel erases does not grow.
inline constexpr size_t kFieldsOfLookUp = 16;

// Ends the expired holds, the expired value, or expired fields of a hash, of a key whose deadline has
// passed. Not while loading. No expired field is visible then; erases at most `most_fields` of them.
// Returns the number of erased fields of a hash that remains.
size_t expire_key(Context& ctx, KeyRef k, size_t most_fields = kFieldsOfLookUp);

// Ends one hold of a lock. The last hold removes the key.
void end_holder(Context& ctx, KeyRef k, const Holder* holder, End why, TimeMs at);

// Ends the exclusive hold of a key, if it has one; its entry stays.
void end_exclusive(Context& ctx, KeyRef k, End why, TimeMs at);

// Sets an entry's deadline. Where this moves the entry, its attachment moves with it.
void place_deadline(Context& ctx, KeyRef k, TimeMs deadline, DurationMs ttl, TimeMs renewed);

// Sets a lock's deadline to that of the holder that expires first.
void follow_holders(Context& ctx, KeyRef k);

// Marks the queue of a changed key to be served: the change may admit a waiter, or moves the time of the
// next one.
void touch(Context& ctx, DbIndex db, const Entry& e);

// Renews one hold for the given TTL; nullopt: for its last TTL. `holder` is null for an exclusive hold.
void renew_hold(Context& ctx, KeyRef k, const Holder* holder, std::optional<DurationMs> given,
                ConnId client);
// The token of an exclusive hold. A key that SET made gets its token now.
Token exclusive_token(Context& ctx, KeyRef k);

// Raises the token of a hold, and the counter of its stripe, to `token`, which must be larger than the
// present one.
void raise_token(Context& ctx, KeyRef k, const Holder* holder, Token token);

// The connection that last set an entry, or a hold of a lock. It is not known after a restart.
struct Origin {
  uint64_t serial = 0;  // 0: disconnected, or not known
  std::string_view addr;
  std::string_view name;
};
Origin origin_of(const EngineState& s, const Entry& e);
Origin origin_of(const EngineState& s, uint64_t serial);
// The attachment of an exclusive hold is stored beside its entry, by handle. take_attachment() removes it
// and returns it.
Attachment take_attachment(Context& ctx, KeyRef k);
void attach(Context& ctx, KeyRef k, Attachment a);

// The hold of one owner.
struct OneHold {
  const Holder* holder = nullptr;  // null: the exclusive hold of a string
  Token token;                     // of a string 0 if it has none yet
  Capacity capacity = kExclusive;
  TimeMs deadline;
  TimeMs renewed;
};
// Returns nullopt if the owner does not hold the key. The hold must not be due.
std::optional<OneHold> hold_of(const Entry& e, std::string_view owner);
// Returns the capacity with which the owner holds the key, or nullopt if it does not hold it.
std::optional<Capacity> held_capacity(const Entry& e, std::string_view owner);
// Renews a hold for the TTL, but never ends it sooner than without that.
void extend_hold(Context& ctx, KeyRef k, const Holder* holder, DurationMs ttl, ConnId client);

// Whether a holder of the key gets a push when it loses its hold.
bool has_listener(const EngineState& s, DbIndex db, const Keyspace::Found& f);

// Returns owner and attachment of each hold of a live key. The owners are views into the entry.
std::vector<std::pair<std::string_view, Attachment>> attachments_of_key(const EngineState& s, DbIndex db,
                                                                        const Keyspace::Found& f);

}  // namespace holdfast
