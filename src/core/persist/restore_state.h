// Restores keys, holds and leases as they were, without the side effects of their creation: no
// notifications, no counts, no journal records. Also restores those that are already due, which end with
// the first tick. The readers of the journal and of the snapshot use it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec/hold_codec.h"
#include "core/events/record_changes.h"
#include "core/keyspace/value_body.h"
#include "core/lock/keys.h"
#include "core/values/field_expiry.h"

namespace holdfast {

// Returns a Context in which nothing is due.
Context restoring_context(EngineState& s, Now now, Effects& fx);

void restore_string(Context& ctx, DbIndex db, std::string_view key, std::string_view value,
                    int64_t deadline_ms, const SavedHold& hold);
// Restores a lock. The owners are views that need to live only during the call. Returns false if the
// holders do not admit each other.
[[nodiscard]] bool restore_lock(Context& ctx, DbIndex db, std::string_view key,
                                std::span<const SavedHolder> holders);
// Adds a holder to a lock, or replaces the holder with the same owner. Returns false if the key is not a
// lock, or if the lock does not admit the holder.
[[nodiscard]] bool restore_holder(Context& ctx, DbIndex db, std::string_view key,
                                  const SavedHolder& holder);
void restore_hash(Context& ctx, DbIndex db, std::string_view key, std::span<const std::string_view> pairs,
                  int64_t deadline_ms);
void restore_body(Context& ctx, DbIndex db, std::string_view key, EntryType type,
                  std::unique_ptr<ValueBody> body, int64_t deadline_ms);
// Changes a part of a string of `size` bytes, and gives it a new deadline and hold. Returns false if the
// key has no such string.
[[nodiscard]] bool restore_string_part(Context& ctx, DbIndex db, std::string_view key, size_t size,
                                       size_t at, std::string_view part, int64_t deadline_ms,
                                       const SavedHold& hold);
// Moves the value of a key to another one, or copies it. Returns false if there is no such value.
[[nodiscard]] bool restore_move(Context& ctx, Record op, DbIndex db, std::string_view from, DbIndex to_db,
                                std::string_view to, int64_t deadline_ms, const SavedHold& hold);
// Sets the deadline of a key with a hash of any form, list, set or sorted set. Returns false if there is no
// such key.
[[nodiscard]] bool restore_deadline(Context& ctx, DbIndex db, std::string_view key, int64_t deadline_ms);
// Sets the deadlines of fields of a hash. Returns false if the key has no hash.
[[nodiscard]] bool restore_field_deadlines(Context& ctx, DbIndex db, std::string_view key,
                                           std::span<const FieldDeadline> deadlines);
// The record that a script on Redis wrote about a lock.
struct TokenRecord {
  DbIndex db = 0;
  std::string key;
  Token last;
  std::string owner_sha1;  // owner of the exclusive hold; empty if none
  std::optional<SavedHolder> exclusive;
  std::vector<SavedNote> notes;
};
// Raises the tokens of the key to the last recorded one. If the exclusive hold is still the recorded one,
// it gets the recorded token. A hold gets the note that was recorded with its token. Must be called after
// the key itself is restored.
void restore_token_record(Context& ctx, const TokenRecord& record);
void restore_delay(Context& ctx, DbIndex db, std::string_view key, int64_t until_ms);
// Returns false if there is no such lease.
[[nodiscard]] bool restore_lease_deadline(Context& ctx, std::string_view id, DurationMs ttl,
                                          int64_t deadline_ms);
void restore_lease(Context& ctx, std::unique_ptr<LiveLease> lease, int64_t deadline_ms);

// Replays records. Returns an empty string, or the error; the records before the error remain applied.
std::string replay(Context& ctx, std::string_view records);

// Ends the restore: session holds get the session grace, as their connections are closed.
void finish_restoring(Context& ctx);

}  // namespace holdfast
