// Writes journal records of all changes, in their order, with absolute times. A replay gives the same keys,
// holds and leases, without a clock. Records are written while requests run; the shell takes the bytes at
// the end of the loop iteration. Nothing is written while Journal::on is false.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/types.h"
#include "core/codec/journal_record.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/lock_body.h"
#include "core/state/lease_table.h"

namespace holdfast {

struct EngineState;
struct Context;
struct MemberScore;

// Records the new value, deadline or hold of a key, or its removal.
void journal_key(Context& ctx, DbIndex db, std::string_view key);
// The same, for a change of a part of a large value. `pairs` is field, value, field, value ...
void journal_fields(Context& ctx, DbIndex db, std::string_view key,
                    std::span<const std::string_view> pairs);
void journal_erased_fields(Context& ctx, DbIndex db, std::string_view key,
                           std::span<const std::string_view> fields);
// The same for deadlines of fields: all get the same one, or none (kNever).
void journal_field_deadlines(Context& ctx, DbIndex db, std::string_view key,
                             std::span<const std::string_view> fields, TimeMs deadline);
// The same for the members of a set or sorted set; `op` is kAddMembers or kEraseMembers.
void journal_members(Context& ctx, Record op, DbIndex db, std::string_view key,
                     std::span<const std::string_view> members);
// The same for a list; `op` is kSetElement or kInsertElement.
void journal_pushed_elements(Context& ctx, DbIndex db, std::string_view key, ListEnd end,
                             std::span<const std::string_view> elements);
void journal_element(Context& ctx, Record op, DbIndex db, std::string_view key, size_t index,
                     std::string_view element);
void journal_erased_elements(Context& ctx, DbIndex db, std::string_view key, size_t index, size_t count);
void journal_erased_equal_elements(Context& ctx, DbIndex db, std::string_view key, ListEnd from,
                                   size_t most, std::string_view element);
// The same for a sorted set.
void journal_scores(Context& ctx, DbIndex db, std::string_view key, std::span<const MemberScore> scores);
void journal_erased_ranks(Context& ctx, DbIndex db, std::string_view key, size_t rank, size_t count);
// Records the new deadline or hold of a key whose value is the same, without the value if that is large.
void journal_hold(Context& ctx, DbIndex db, const Keyspace::Found& f);
// Records a change of a part of a string that had `size` bytes, and has a new hold: the bytes from `at` on,
// `bytes` in number, or the whole string if that is small. finish_journal() must be called before the
// change.
void journal_string_part(Context& ctx, DbIndex db, const Keyspace::Found& f, size_t size, size_t at,
                         size_t bytes);
// Begins a move or copy of a value to another key, if the value is large: `op` is kMove or kCopy. Returns
// whether end_move() must follow, with the key that has the value then. Between them the two keys write no
// records.
[[nodiscard]] bool begin_move(Context& ctx, Record op, DbIndex db, const Keyspace::Found& from,
                              DbIndex to_db, std::string_view to);
void end_move(Context& ctx, const Keyspace::Found& to);
// The same for a key that gets the value of a payload. The value has `bytes` bytes. The parts of the
// payload follow each other.
[[nodiscard]] bool begin_restore(Context& ctx, DbIndex db, std::string_view key, uint64_t bytes);
void end_restore(Context& ctx, const Keyspace::Found& f, std::span<const std::string_view> payload);
void journal_holder(Context& ctx, DbIndex db, std::string_view key, const Holder& h);
void journal_erased_holder(Context& ctx, DbIndex db, std::string_view key, std::string_view owner);
void journal_delay(Context& ctx, DbIndex db, std::string_view key, TimeMs until);
void journal_flush(Context& ctx, DbIndex db);
// `a` and `b` are the numbers that clients use.
void journal_swap(Context& ctx, DbIndex a, DbIndex b);
// A library of functions was loaded; one was removed, or all if the name is empty.
void journal_library(Context& ctx, std::string_view code);
void journal_library_end(Context& ctx, std::string_view name);
void journal_lease(Context& ctx, const LiveLease& lease);
// The lease has a new TTL and deadline.
void journal_lease_deadline(Context& ctx, const LiveLease& lease);
void journal_lease_end(Context& ctx, std::string_view id, LeaseState state, Token token);

// At the end of a request: writes the deferred records, except large values.
void finish_journal(Context& ctx);
// Writes all deferred records: before the shell takes the records, and before a record for more than one
// key.
void write_large_records(Context& ctx);

// For a snapshot: the records of leases, of their outcomes and of lock-delays, as they are now.
std::string side_records(const EngineState& s, const Now& now);

}  // namespace holdfast
