// Puts keys, holds and leases back as they were, without the consequences that making them has: nobody is
// told, nothing is counted, nothing is written to the journal. What is due already comes back as well, and
// ends with the first tick. For what reads the journal and the snapshot.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/codec/hold_codec.h"
#include "core/events/record_changes.h"
#include "core/keyspace/hash_body.h"
#include "core/lock/keys.h"

namespace holdfast {

// A turn in which nothing is due.
Context restoring_context(EngineState& s, Now now, Effects& fx);

void restore_string(Context& ctx, DbIndex db, std::string_view key, std::string_view value,
                    int64_t deadline_ms, const SavedHold& hold);
// Its holders' owners are views that need to live only during the call. False: they do not admit each
// other.
[[nodiscard]] bool restore_lock(Context& ctx, DbIndex db, std::string_view key,
                                std::span<const SavedHolder> holders);
// Adds a holder to a lock, or replaces the one with that owner. False: the key is no lock, or full.
[[nodiscard]] bool restore_holder(Context& ctx, DbIndex db, std::string_view key,
                                  const SavedHolder& holder);
void restore_hash(Context& ctx, DbIndex db, std::string_view key, std::span<const std::string_view> pairs,
                  int64_t deadline_ms);
void restore_hash(Context& ctx, DbIndex db, std::string_view key, std::unique_ptr<HashBody> body,
                  int64_t deadline_ms);
// What a script on Redis has noted of a lock.
struct Note {
  DbIndex db = 0;
  std::string key;
  Token last;
  std::string owner_sha1;  // of the exclusive hold, if there is one
  std::optional<SavedHolder> exclusive;
};
// The key's tokens go on behind the last; its exclusive hold, if that is still the noted one, has its
// token. After the key itself.
void restore_note(Context& ctx, const Note& note);
void restore_delay(Context& ctx, DbIndex db, std::string_view key, int64_t until_ms);
void restore_lease(Context& ctx, std::unique_ptr<LiveLease> lease, int64_t deadline_ms);

// Does the records of a turn. Empty, or what is wrong with them; what came before that is done.
std::string replay(Context& ctx, std::string_view records);

// All has been read: the holds of sessions are given the session grace, as their connections are gone.
void finish_restoring(Context& ctx);

}  // namespace holdfast
