// What has changed, in the order of the changes, as records with absolute times: doing them again gives the
// same keys, holds and leases, without a clock. Written while requests run; the shell takes the bytes at
// the end of its turn. Nothing is written while `on` is false.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/types.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/lock_body.h"
#include "core/state/lease_table.h"

namespace holdfast {

struct EngineState;
struct Context;

// The key has another value, deadline or hold, or is gone.
void journal_key(Context& ctx, DbIndex db, std::string_view key);
// The same, where only this much of a large value has changed. `pairs` is field, value, field, value ...
void journal_fields(Context& ctx, DbIndex db, std::string_view key,
                    std::span<const std::string_view> pairs);
void journal_erased_fields(Context& ctx, DbIndex db, std::string_view key,
                           std::span<const std::string_view> fields);
void journal_holder(Context& ctx, DbIndex db, std::string_view key, const Holder& h);
void journal_erased_holder(Context& ctx, DbIndex db, std::string_view key, std::string_view owner);
void journal_delay(Context& ctx, DbIndex db, std::string_view key, TimeMs until);
void journal_flush(Context& ctx, DbIndex db);
// `a` and `b` as clients know them.
void journal_swap(Context& ctx, DbIndex a, DbIndex b);
void journal_lease(Context& ctx, const LiveLease& lease);
void journal_lease_end(Context& ctx, std::string_view id, LeaseState state, Token token);

// A request is over: what was put off is written, but for large values.
void finish_journal(Context& ctx);
// Writes all that was put off: before the shell takes the records, and before a record that stands for more
// than one key.
void write_large_records(Context& ctx);

// For a snapshot: the records of leases, of their outcomes and of lock-delays, as they are now.
std::string side_records(const EngineState& s, const Now& now);

}  // namespace holdfast
