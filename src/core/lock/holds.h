// The life of a hold: renewed, ended, and what its end sets off. The functions of src/core/lock are the
// only ones that make, change or end holds; commands call them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/state/state.h"

namespace holdfast {

// Why a hold ends. A lock-delay follows the middle three; nobody is told of a loss after kReleased.
enum class End : uint8_t { kReleased, kExpired, kDisconnected, kBroken, kDeleted, kOverwritten };

// Ends all holds of a key and removes it; its queue, if any, stays and is served before the turn ends.
// `at` is when its holds ended, which may have been before now.
void remove_key(Context& ctx, DbIndex db, Keyspace::Found& f, End why, TimeMs at);
inline void remove_key(Context& ctx, DbIndex db, Keyspace::Found& f, End why) {
  remove_key(ctx, db, f, why, ctx.due);
}
// Ends what is due of a key that is due.
void expire_key(Context& ctx, DbIndex db, Keyspace::Found& f);

// Ends one hold of a lock with several; the key goes with the last.
void end_holder(Context& ctx, DbIndex db, Keyspace::Found& f, const Holder* holder, End why, TimeMs at);

// Ends the exclusive hold of a key, if it has one; its entry stays.
void end_exclusive(Context& ctx, DbIndex db, Keyspace::Found& f, End why, TimeMs at);

// Sets an entry's deadline and carries its attachment along where that moved it.
void place_deadline(Context& ctx, DbIndex db, Keyspace::Found& f, TimeMs deadline, DurationMs ttl,
                    TimeMs renewed);

// Sets a lock's deadline to that of the holder that ends first.
void follow_holders(Context& ctx, DbIndex db, Keyspace::Found& f);

// The key changed in a way that may let a waiter in, or that moves its next change.
void touch(Context& ctx, DbIndex db, const Entry& e);

// One hold's ttl, renewed by its owner. nullopt: for the ttl last given.
void renew_hold(Context& ctx, DbIndex db, Keyspace::Found& f, const Holder* holder,
                std::optional<DurationMs> given, ConnId client);
// The token of an exclusive hold, assigned now where the key was made by SET.
Token exclusive_token(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f);

// Raises the token of a hold, and the counter of its stripe, to `token`, which must be larger than the
// present one.
void raise_token(Context& ctx, DbIndex db, const Key& key, Keyspace::Found& f, const Holder* holder,
                 Token token);

// The connection that set an entry last, if it is still there.
const Conn* client_of(const EngineState& s, const Entry& e);
// An exclusive hold's attachment is kept beside its entry, by handle. What is taken is no longer attached.
Attachment take_attachment(Context& ctx, DbIndex db, Keyspace::Found& f);
void attach(Context& ctx, DbIndex db, Keyspace::Found& f, const Attachment& a);

// Whether a holder of the key hears of its loss by a push.
bool has_listener(const EngineState& s, DbIndex db, const Keyspace::Found& f);

// Owner and attachment of each hold of a live key. The owners are views into the entry.
std::vector<std::pair<std::string_view, Attachment>> attachments_of_key(const EngineState& s, DbIndex db,
                                                                        const Keyspace::Found& f);

}  // namespace holdfast
